//! The table for people: every decision with its reason, then the numbers, then what could be done.

mod words;
pub(crate) mod hints;

use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table, presets,
};
use ratoon::Proposal;
use ratoon::proposal::Decision;

use crate::arguments::Compact;
use crate::input::{Archive, Input, Shape, Source};
use crate::output::Stream;
use crate::terminal::{HINT, grouped, shown};

/// More rows than this are not read; cut results come first then.
const MAX_ROWS: usize = 200;
const ID_COLUMNS: usize = 24;
const TOOL_COLUMNS: usize = 20;

/// A call and everything about it that is explained.
#[derive(Debug)]
pub(crate) struct Explained<'x, 'r, 'a> {
    pub(crate) input: &'r Input<'a>,
    pub(crate) source: &'x Source,
    pub(crate) arguments: &'x Compact,
    pub(crate) proposal: &'x Proposal<'r, 'a>,
}

/// The whole explanation, with colours. `stream` is where it goes, whose width is used if it is a terminal.
pub(crate) fn table(explained: &Explained<'_, '_, '_>, stream: Stream) -> String {
    let proposal = explained.proposal;
    let rows = rows_to_show(&proposal.decisions);
    let mut out = String::new();
    if let Some(assumptions) = assumptions(explained) {
        out += &format!("{assumptions}\n\n");
    }
    if !rows.is_empty() {
        out += &decisions(explained, &rows, stream);
        let hidden = proposal.decisions.len() - rows.len();
        if hidden > 0 {
            out += &format!("{} more results not shown; --json has them all\n", grouped(hidden as u64));
        }
        out.push('\n');
    }
    for (name, text) in words::totals(explained) {
        out += &format!("{name:<11} {text}\n");
    }
    for hint in hints::hints(explained) {
        out += &format!("{HINT}hint:{HINT:#} {hint}\n");
    }
    out
}

/// What was filled in because the input is no request.
fn assumptions(explained: &Explained<'_, '_, '_>) -> Option<String> {
    let holds = match explained.input.shape {
        Shape::Request => return None,
        Shape::Messages => "a list of messages",
        Shape::Run => "a recorded run",
    };
    let arguments = explained.arguments;
    let mut assumed = Vec::new();
    if !arguments.options.iter().any(|(name, _)| name == "profile") {
        assumed.push("the recommended profile");
    }
    if arguments.tools.is_none() {
        assumed.push("all tools");
    }
    if explained.input.archive == Archive::File {
        assumed.push("the file as the archive of its originals");
    }
    let list = match assumed.split_last() {
        None => String::new(),
        Some((last, [])) => format!("; assumed: {last}"),
        Some((last, others)) => format!("; assumed: {} and {last}", others.join(", ")),
    };
    Some(format!("{} is {holds}{list}", explained.source.name()))
}

/// Which decisions get a row, in their order: those with the largest savings first, then the first of the rest.
fn rows_to_show(decisions: &[Decision<'_, '_>]) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..decisions.len()).collect();
    if rows.len() > MAX_ROWS {
        rows.sort_by_key(|&row| (std::cmp::Reverse(decisions[row].saved_chars), row));
        rows.truncate(MAX_ROWS);
        rows.sort_unstable();
    }
    rows
}

fn decisions(explained: &Explained<'_, '_, '_>, rows: &[usize], stream: Stream) -> String {
    let mut table = Table::new();
    // Colours are always in the text and go again where it is written, if nobody is there to see them.
    table.style_text_only();
    table.load_style(presets::NOTHING).enforce_styling().set_content_arrangement(ContentArrangement::Dynamic);
    if stream == Stream::Error {
        table.use_stderr();
    }
    let header = ["id", "tool", "size", "need", "decision", "reason", "saved"];
    table.set_header(header.map(|name| Cell::new(name).add_attribute(Attribute::Bold)));
    for &row in rows {
        let decision = &explained.proposal.decisions[row];
        let probability = decision.probability.map_or(String::new(), |p| format!("{:.3}", p.get()));
        let number = |number: Option<u64>| number.map_or(String::new(), grouped);
        let verdict = if decision.is_preview() {
            Cell::new("cut").fg(Color::Green).add_attribute(Attribute::Bold)
        } else {
            Cell::new("keep")
        };
        let tool = decision.tool.map(|name| shown(&name.decode_lossy(), TOOL_COLUMNS)).unwrap_or_default();
        table.add_row([
            Cell::new(shown(&decision.call_id.decode_lossy(), ID_COLUMNS)),
            Cell::new(tool),
            Cell::new(number(decision.result_chars)),
            Cell::new(probability),
            verdict,
            Cell::new(words::reason(decision, &explained.input.request, &explained.proposal.stats.model)),
            Cell::new(number(decision.saved_chars)),
        ]);
    }
    // Only the reason may be broken into lines.
    let fixed = || ColumnConstraint::ContentWidth;
    let reason = ColumnConstraint::LowerBoundary(comfy_table::Width::Fixed(12));
    table.set_constraints([fixed(), fixed(), fixed(), fixed(), fixed(), reason, fixed()]);
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((u16::from(at > 0), u16::from(at + 1 < header.len())));
        if matches!(header[at], "size" | "need" | "saved") {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n") + "\n"
}

//! Generated requests of any size, the same for the same seed: log lines, code, JSON, tables, CJK and emoji.

use std::fmt::Write;

/// A whole request as JSON text with this many call/result pairs, one assistant message per step, and exactly
/// `chars_per_result` code points in every result.
///
/// Every call has a reference, every tool is eligible; options are left at their defaults. A hundred megabytes take
/// seconds even without optimisation.
pub fn synthetic(pairs: usize, chars_per_result: usize, seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut request = String::with_capacity(pairs * (chars_per_result * 5 / 4 + 700) + 1000);
    request
        .push_str(r#"{"messages":[{"id":"m0","name":"user","role":"user","content":[{"type":"text","text":"#);
    quote(&mut request, "The nightly import drops rows with a “quoted” name. Find out why and fix it.");
    request.push_str("}]}");
    let pool = Pool::new(&mut random);
    for number in 1..=pairs {
        push_step(&mut request, number, chars_per_result, &pool, &mut random);
        if number % 20 == 0 {
            write!(
                request,
                r#",{{"id":"u{number}","name":"user","role":"user","content":[{{"type":"text","text":"#
            )
            .expect("writing to a text cannot fail");
            quote(
                &mut request,
                &format!("Go on with part {number}, and keep the limit of {} rows.", random.below(9000)),
            );
            request.push_str("}]}");
        }
    }
    request.push_str(
        r#"],"goal":"Fix the nightly import","next_action":"Run the import tests again","source_refs":{"#,
    );
    for number in 1..=pairs {
        let comma = if number == 1 { "" } else { "," };
        write!(request, r#"{comma}"call-{number:06}":"archive/synthetic/call-{number:06}""#)
            .expect("writing to a text cannot fail");
    }
    request.push_str(r#"},"eligible_tool_names":["#);
    for (at, tool) in TOOLS.iter().enumerate() {
        request.push_str(if at == 0 { "" } else { "," });
        quote(&mut request, tool);
    }
    request.push_str("]}");
    request
}

const TOOLS: [&str; 5] = ["run_shell", "read_file", "search_code", "fetch_page", "query_table"];
const WORDS: [&str; 24] = [
    "import",
    "row",
    "cursor",
    "retry",
    "timeout",
    "ledger",
    "schema",
    "buffer",
    "naïve",
    "résumé",
    "token",
    "window",
    "接続",
    "超时",
    "日志",
    "오류",
    "запрос",
    "commit",
    "rollback",
    "index",
    "mäßig",
    "offset",
    "batch",
    "queue",
];

fn push_step(request: &mut String, number: usize, chars: usize, pool: &Pool, random: &mut Random) {
    let tool = TOOLS[random.below(TOOLS.len())];
    write!(request, r#",{{"id":"m{number}","name":"agent","role":"assistant","content":["#)
        .expect("writing to a text cannot fail");
    if random.below(3) == 0 {
        request.push_str(r#"{"type":"thinking","thinking":"#);
        quote(request, &format!("Step {number}: the {} may explain it.\nCheck that first.", random.word()));
        request.push_str("},");
    }
    request.push_str(r#"{"type":"text","text":"#);
    quote(request, &format!("Looking at the {} of part {number} now.", random.word()));
    write!(request, r#"}},{{"type":"tool_call","id":"call-{number:06}","name":"{tool}","input":"#)
        .expect("writing to a text cannot fail");
    let path = format!("src/{}/part_{}.py", random.word(), random.below(400));
    quote(
        request,
        &format!(r#"{{"path": "{path}", "pattern": "{}", "limit": {}}}"#, random.word(), random.below(500)),
    );
    write!(
        request,
        r#","state":"finished"}},{{"type":"tool_result","id":"call-{number:06}","name":"{tool}","output":"#
    )
    .expect("writing to a text cannot fail");
    if random.below(4) == 0 {
        request.push_str(r#"[{"type":"text","text":"#);
        pool.push_result(request, chars, random);
        request.push_str("}]");
    } else {
        pool.push_result(request, chars, random);
    }
    let state = if random.below(25) == 0 { "error" } else { "success" };
    write!(request, r#","state":"{state}"}}]}}"#).expect("writing to a text cannot fail");
}

/// Lines to build results from, escaped once, so that big snapshots cost little more than copying.
struct Pool {
    lines: Vec<Line>,
}

struct Line {
    text: String,
    escaped: String,
    chars: usize,
}

impl Pool {
    fn new(random: &mut Random) -> Pool {
        let line = |random: &mut Random| {
            let text = random_line(random);
            let mut escaped = String::new();
            escape(&mut escaped, &text);
            Line { chars: text.chars().count(), escaped, text }
        };
        Pool { lines: (0..600).map(|_| line(random)).collect() }
    }

    fn push_result(&self, request: &mut String, chars: usize, random: &mut Random) {
        request.push('"');
        let mut missing = chars;
        while missing > 0 {
            // A number in front makes lines of one kind differ, as they do in real output.
            let prefix = format!("{:x} ", random.next() >> 40);
            let line = &self.lines[random.below(self.lines.len())];
            if prefix.len() + line.chars <= missing {
                request.push_str(&prefix);
                request.push_str(&line.escaped);
                missing -= prefix.len() + line.chars;
            } else {
                let last: String = prefix.chars().chain(line.text.chars()).take(missing).collect();
                escape(request, &last);
                missing = 0;
            }
        }
        request.push('"');
    }
}

fn random_line(random: &mut Random) -> String {
    let (word, other, number) = (random.word(), random.word(), random.below(100_000));
    match random.below(8) {
        0 => format!(
            "2026-03-{:02} 04:{:02}:11 INFO  [{word}] {other} done in {number} ms\n",
            number % 28 + 1,
            number % 60
        ),
        1 => format!(
            "2026-03-07 04:12:{:02} ERROR [{word}] \"{other}\" refused: code={number} 💥\n",
            number % 60
        ),
        2 => format!(
            "    def {word}_{number}(self, {other}=None):\n        return self.{other}[\"k{number}\"]\n"
        ),
        3 => format!(
            "{{\"id\": {number}, \"name\": \"{word}\", \"tags\": [\"{other}\", null, {}.5e-3]}}\n",
            number % 97
        ),
        4 => format!("C:\\jobs\\{word}\\part{number}.csv\t{number}\t{other}\r\n"),
        5 => format!("{word}：第{number}行读取失败，已跳过。{other} 👩‍💻🇪🇺\n"),
        6 => format!("| {word:<12} | {other:<12} | {number:>8} |\n"),
        _ => format!("\u{1b}[32m{word}\u{1b}[0m {other} -> https://example.org/{word}/{number}?q=<a&b>\n\n"),
    }
}

fn quote(request: &mut String, text: &str) {
    request.push('"');
    escape(request, text);
    request.push('"');
}

fn escape(request: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '"' => request.push_str("\\\""),
            '\\' => request.push_str("\\\\"),
            '\n' => request.push_str("\\n"),
            '\r' => request.push_str("\\r"),
            '\t' => request.push_str("\\t"),
            control if control < ' ' => {
                write!(request, "\\u{:04x}", control as u32).expect("writing to a text cannot fail")
            }
            other => request.push(other),
        }
    }
}

/// Xorshift: a few lines instead of a dependency, and the same numbers for ever.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        // Xorshift stays at zero, and small seeds begin alike; a multiplied odd state avoids both.
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for _ in 0..8 {
            random.next();
        }
        random
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 16) as usize % limit
    }

    fn word(&mut self) -> &'static str {
        WORDS[self.below(WORDS.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn parsed(pairs: usize, chars: usize, seed: u64) -> Value {
        serde_json::from_str(&synthetic(pairs, chars, seed)).expect("a generated request is JSON")
    }

    fn results(request: &Value) -> Vec<&Value> {
        let messages = request["messages"].as_array().unwrap().iter();
        let blocks = messages.flat_map(|message| message["content"].as_array().unwrap());
        blocks.filter(|block| block["type"] == "tool_result").collect()
    }

    #[test]
    fn results_have_the_wanted_length_and_a_reference() {
        for chars in [0, 1, 37, 5000] {
            let request = parsed(50, chars, 3);
            let results = results(&request);
            assert_eq!(results.len(), 50);
            for result in results {
                let output = &result["output"];
                let text = output.as_str().or_else(|| output[0]["text"].as_str()).unwrap();
                assert_eq!(text.chars().count(), chars);
                assert!(request["source_refs"].get(result["id"].as_str().unwrap()).is_some());
                assert!(request["eligible_tool_names"].as_array().unwrap().contains(&result["name"]));
            }
        }
    }

    #[test]
    fn the_seed_decides() {
        assert_eq!(synthetic(20, 300, 1), synthetic(20, 300, 1));
        assert_ne!(synthetic(20, 300, 1), synthetic(20, 300, 2));
        assert_ne!(synthetic(20, 300, 0), synthetic(20, 300, 1));
    }

    #[test]
    fn texts_are_varied() {
        let text = synthetic(40, 3000, 5);
        for sign in [
            "\\\"",
            "\\n",
            "\\u001b",
            "\\\\",
            "💥",
            "日志",
            r#""state":"error""#,
            r#""output":[{"#,
            "thinking",
        ] {
            assert!(text.contains(sign), "no {sign}");
        }
    }

    #[test]
    fn no_pairs_are_possible() {
        assert_eq!(parsed(0, 100, 1)["messages"].as_array().unwrap().len(), 1);
    }
}

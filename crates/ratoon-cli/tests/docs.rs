//! Everything that the documentation shows is run as it stands, and what it prints is compared.
//!
//! A fence ```` ```sh ```` is run line by line in a folder with a copy of `examples/`; `sh fails` must exit with 2;
//! `sh no-run` needs something that a test cannot have. A fence ```` ```text ```` behind it is what must be printed,
//! where a line `...` stands for any lines. `scripts/test` is not run: it is what runs this test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PAGES: [&str; 4] = ["README.md", "README.zh.md", "docs/command-line.md", "docs/request.md"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A fenced block: its info string and its text.
struct Fence {
    info: String,
    text: String,
}

fn fences(page: &str) -> Vec<Fence> {
    let mut fences: Vec<Fence> = Vec::new();
    let mut open = false;
    for line in page.lines() {
        if let Some(info) = line.strip_prefix("```") {
            open = !open;
            if open {
                fences.push(Fence { info: info.to_owned(), text: String::new() });
            }
        } else if let Some(fence) = fences.last_mut().filter(|_| open) {
            fence.text += line;
            fence.text.push('\n');
        }
    }
    assert!(!open, "a fence is not closed");
    fences
}

/// Runs one line; everything it prints, and its exit code.
fn run(line: &str, folder: &Path) -> (String, Option<i32>) {
    let binary = Path::new(env!("CARGO_BIN_EXE_ratoon"));
    let path = format!(
        "{}:{}",
        binary.parent().expect("a binary is in a folder").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!("{line} 2>&1"))
        .current_dir(folder)
        .env("PATH", path)
        .envs([
            ("DECISION_MODEL_BACKEND", ""),
            ("DECISION_MODEL_API_KEY", ""),
            ("DECISION_MODEL_BASE_URL", ""),
        ])
        .output()
        .expect("sh runs");
    (String::from_utf8(output.stdout).expect("what is printed is text"), output.status.code())
}

/// Whether `shown`, in which `...` stands for any lines, is what was printed.
fn matches(shown: &[&str], printed: &[&str]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((&"...", rest)) => (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..])),
        Some((line, rest)) => {
            printed.first().is_some_and(|found| found.trim_end() == line.trim_end())
                && matches(rest, &printed[1..])
        }
    }
}

#[test]
fn what_the_documentation_shows_is_what_happens() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("examples")).expect("a folder");
    for entry in fs::read_dir(root().join("examples")).expect("examples") {
        let entry = entry.expect("an entry").path();
        fs::copy(&entry, folder.path().join("examples").join(entry.file_name().expect("a name")))
            .expect("a copy");
    }
    let mut ran = 0;
    for page in PAGES {
        let text = fs::read_to_string(root().join(page)).expect("a page");
        let mut printed = String::new();
        for fence in fences(&text) {
            match fence.info.as_str() {
                "sh" | "sh fails" => {
                    printed.clear();
                    for line in fence.text.lines().filter(|line| *line != "scripts/test") {
                        let line = line.replace("cargo run --release -- ", "ratoon ");
                        let (output, code) = run(&line, folder.path());
                        let expected = if fence.info == "sh" { 0 } else { 2 };
                        assert_eq!(code, Some(expected), "{page}: {line}\n{output}");
                        printed += &output;
                        ran += 1;
                    }
                }
                "text" => {
                    let shown: Vec<&str> = fence.text.lines().chain(["..."]).collect();
                    let lines: Vec<&str> = printed.lines().collect();
                    let anywhere: Vec<&str> = ["..."].into_iter().chain(shown).collect();
                    assert!(
                        matches(&anywhere, &lines),
                        "{page} shows\n{}\nbut this is printed\n{printed}",
                        fence.text
                    );
                }
                "sh no-run" | "json" | "rust" => {}
                other => panic!("{page}: a fence of unknown kind {other:?}"),
            }
        }
    }
    assert!(ran >= 12, "only {ran} commands were found");
}

#[test]
fn links_between_pages_lead_somewhere() {
    for page in PAGES.into_iter().chain([
        "docs/architecture.md",
        "docs/differences.md",
        "docs/library.md",
        "CONTRIBUTING.md",
    ]) {
        let text = fs::read_to_string(root().join(page)).expect("a page");
        let folder = root().join(page).parent().expect("a folder").to_owned();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap_or_default();
            assert!(link.starts_with("http") || folder.join(file).exists(), "{page}: {link}");
        }
    }
}

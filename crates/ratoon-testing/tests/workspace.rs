//! The promises of the workspace itself: who may depend on whom, what the core stays free of, which licences come
//! in. Read from `cargo metadata`, which fetches what is not there yet.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Allowed dependencies inside the workspace, without those of tests. Nothing points back.
const DIRECTIONS: [(&str, &[&str]); 5] = [
    ("ratoon", &[]),
    ("ratoon-archive", &["ratoon"]),
    ("ratoon-models", &["ratoon"]),
    ("ratoon-cli", &["ratoon", "ratoon-archive", "ratoon-models"]),
    ("ratoon-testing", &[]),
];

/// The core may use these crates directly, and nothing else.
const CORE_DEPENDENCIES: [&str; 4] = ["memchr", "serde", "serde_json", "thiserror"];

/// Licences we may ship under.
const LICENCES: [&str; 11] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

fn list<'v>(value: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> {
    value[field].as_array().into_iter().flatten()
}

/// The packages of the workspace.
fn members(metadata: &Value) -> Vec<&Value> {
    let ids: BTreeSet<&str> = list(metadata, "workspace_members").filter_map(Value::as_str).collect();
    list(metadata, "packages").filter(|package| ids.contains(text(package, "id"))).collect()
}

/// Names of a package's dependencies that end up in the product (kind null), not in tests.
fn dependencies(package: &Value) -> BTreeSet<&str> {
    list(package, "dependencies")
        .filter(|found| found["kind"].is_null())
        .map(|found| text(found, "name"))
        .collect()
}

#[test]
fn dependencies_point_inwards() {
    let metadata = metadata();
    let members = members(&metadata);
    let names: BTreeSet<&str> = members.iter().map(|package| text(package, "name")).collect();
    let allowed: BTreeMap<&str, &[&str]> = DIRECTIONS.into_iter().collect();
    assert_eq!(names, allowed.keys().copied().collect(), "every crate has its place in DIRECTIONS");
    for package in members {
        let name = text(package, "name");
        let inside: Vec<&str> =
            dependencies(package).into_iter().filter(|found| names.contains(found)).collect();
        let surplus: Vec<&&str> = inside.iter().filter(|found| !allowed[name].contains(found)).collect();
        assert!(surplus.is_empty(), "{name} must not depend on {surplus:?}");
    }
}

#[test]
fn the_core_stays_small_and_without_io() {
    let metadata = metadata();
    let core =
        members(&metadata).into_iter().find(|package| text(package, "name") == "ratoon").expect("the core");
    assert_eq!(dependencies(core), CORE_DEPENDENCIES.into_iter().collect());
}

#[test]
fn every_version_stands_once_in_the_workspace() {
    let root = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"))
        .expect("the manifest");
    for package in members(&metadata()) {
        let manifest = std::fs::read_to_string(text(package, "manifest_path")).expect("a manifest");
        let dependencies =
            manifest.split("dependencies]").skip(1).filter_map(|part| part.split("\n[").next());
        for line in
            dependencies.flat_map(str::lines).filter(|line| line.contains('=') && !line.starts_with('#'))
        {
            assert!(line.contains("workspace = true"), "{}: {line}", text(package, "name"));
            let name = line.split([' ', '.', '=']).next().expect("a line has a beginning");
            assert!(root.contains(&format!("\n{name} = ")), "{name} is missing in the root manifest");
        }
    }
}

#[test]
fn only_permissive_licences_come_in() {
    let metadata = metadata();
    let allowed: BTreeSet<&str> = LICENCES.into_iter().collect();
    let acceptable = |expression: &str| {
        let choices = expression.replace('/', " OR ");
        choices.split(" OR ").any(|choice| {
            choice.split(" AND ").all(|licence| {
                let licence = licence.trim_matches(['(', ')', ' ']);
                allowed.contains(licence.split(" WITH ").next().unwrap_or(licence))
            })
        })
    };
    let refused: Vec<String> = list(&metadata, "packages")
        .filter(|package| !acceptable(text(package, "license")))
        .map(|package| format!("{} ({})", text(package, "name"), text(package, "license")))
        .collect();
    assert!(refused.is_empty(), "not under a permissive licence: {refused:?}");
}

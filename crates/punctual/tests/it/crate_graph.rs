//! Compares the dependencies between the crates with the table in ARCHITECTURE.md.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Command,
};

use serde_json::Value;

/// Each crate with the crates that it uses.
type Graph = BTreeMap<String, BTreeSet<String>>;

fn folder_of(package: &Value, key: &str) -> Option<String> {
    let path = Path::new(package[key].as_str()?);
    let folder = if key == "manifest_path" { path.parent()? } else { path };
    let is_crate = folder.parent().is_some_and(|parent| parent.ends_with("crates"));
    is_crate.then(|| folder.file_name().unwrap().to_string_lossy().into_owned())
}

/// The dependencies of the crates below `crates/`, except those of tests.
fn real() -> Graph {
    let arguments = ["metadata", "--no-deps", "--offline", "--format-version", "1"];
    let output = Command::new(env!("CARGO")).args(arguments).output().unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let uses = |package: &Value| {
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        dependencies.filter(|one| one["kind"].is_null()).filter_map(|one| folder_of(one, "path")).collect()
    };
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages.filter_map(|package| Some((folder_of(package, "manifest_path")?, uses(package)))).collect()
}

/// The rows of the table that begin with a crate in backticks.
fn documented() -> Graph {
    let text = include_str!("../../../../ARCHITECTURE.md");
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, name, _, uses, _] = cells[..] else { return None };
        let name = name.strip_prefix('`')?.strip_suffix('`')?.to_owned();
        Some((name, uses.split(',').map(str::trim).filter(|one| *one != "-").map(str::to_owned).collect()))
    };
    text.lines().filter_map(row).collect()
}

#[test]
fn crates_use_those_that_the_architecture_lists() {
    let (real, documented) = (real(), documented());
    assert!(real.len() > 10, "cargo metadata lists the crates: {real:?}");
    assert_eq!(real, documented, "left: cargo metadata, right: the table in ARCHITECTURE.md");
}

#[test]
fn arrows_point_one_way() {
    let mut left = real();
    while !left.is_empty() {
        let known: BTreeSet<String> = left.keys().cloned().collect();
        let free = known.iter().find(|name| left[*name].is_disjoint(&known));
        let free = free.unwrap_or_else(|| panic!("these crates use each other in a circle: {known:?}")).clone();
        left.remove(&free);
    }
}

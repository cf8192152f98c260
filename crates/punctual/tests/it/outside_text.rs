//! Names, values and messages of outside origin must not control the terminal, whichever command shows them.

use std::{ffi::OsStr, fs, io::Write, os::unix::ffi::OsStrExt, path::Path};

use record::visible::{Passes, Visible, is_hidden};
use serde_json::Value;

use super::{
    harness::{Run, Scratch},
    pair::Far,
};

/// Clears the screen, sets the window's title, colours (also as we do), moves up, and reverses or hides text.
const HOSTILE: &str = "x\u{1b}[2J\u{1b}]0;t\u{7}\u{1b}[0;32m\u{1b}[3A\r\u{9b}31m\u{202e}\u{2066}\u{200b}\u{8}\u{7f}y";

/// Checks both outputs of a run: apart from our own colours, they contain nothing that a terminal obeys or hides.
#[track_caller]
fn expect_harmless(run: &Run, passes: Passes) {
    for (name, bytes) in [("stdout", &run.0.stdout), ("stderr", &run.0.stderr)] {
        let mut shown = Vec::new();
        let mut filter = Visible::new(&mut shown, passes);
        filter.write_all(bytes).unwrap();
        filter.finish().unwrap();
        assert_eq!(String::from_utf8_lossy(bytes), String::from_utf8_lossy(&shown), "{name}");
    }
}

/// Runs a command that refuses something hostile: it fails, and names it in a harmless way.
#[track_caller]
fn refused(scratch: &Scratch, arguments: &[&OsStr]) {
    let run = Run(scratch.punctual("").args(arguments).output().unwrap());
    assert_ne!(run.0.status.code(), Some(0), "{arguments:?}: {}", run.stdout());
    expect_harmless(&run, Passes::Text);
    assert!(format!("{}{}", run.stdout(), run.stderr()).contains("\\u{202e}"), "{arguments:?}: {}", run.stderr());
}

#[test]
fn arguments_and_file_names_are_shown() {
    let scratch = Scratch::new();
    let os = OsStr::new;
    for arguments in [
        vec![os(HOSTILE)],
        vec![os("measure"), os("timer"), os("--load"), os(HOSTILE)],
        vec![os("measure"), os("timer"), os("--period"), os(HOSTILE)],
        vec![os("measure"), os("timer"), os("--profile"), os(HOSTILE)],
        vec![os("measure"), os("timer"), os("--against"), os(HOSTILE)],
        vec![os("show"), os(HOSTILE)],
        vec![os("blame"), os(HOSTILE)],
        vec![os("capture"), os(HOSTILE)],
        vec![os("validate"), os(HOSTILE)],
        vec![os("run"), os(HOSTILE)],
        vec![os("profiles"), os(HOSTILE)],
        vec![os("references"), os(HOSTILE)],
        vec![os("check"), os("nic"), os(HOSTILE)],
        vec![os("amp"), os("info"), os(HOSTILE)],
        vec![os("amp"), os("serve"), os(HOSTILE)],
        vec![os("lab"), os("--kernel"), os(HOSTILE)],
    ] {
        refused(&scratch, &arguments);
    }
    let not_utf_8 = [b"a\xff\x9b", HOSTILE.as_bytes()].concat();
    refused(&scratch, &[os("show"), OsStr::from_bytes(&not_utf_8)]);
}

#[test]
fn refused_files_are_quoted() {
    let scratch = Scratch::new();
    let key = serde_json::to_string(HOSTILE).unwrap();
    let raw = HOSTILE.replace(['\u{1b}', '\u{7}', '\r', '\u{8}', '\u{7f}'], "");
    let toml_key = "\"x\\u001b[2J\\u202e\"";
    for (command, name, content) in [
        ("show", "a.punctual.json", format!("{{\"schema\": {key}}}")),
        ("show", "b.punctual.json", format!("{{\"schema\": \"punctual.run/1\", {key}: 1, \"tool\": {key}}}")),
        ("validate", "a.toml", format!("{toml_key} = 1\n")),
        ("validate", "b.toml", format!("[[probe]]\nkind = {toml_key}\n")),
        ("validate", "c.toml", format!("x = {HOSTILE}\n")),
        ("profiles", "./p.toml", format!("{toml_key} = 1\n")),
        ("references", "./r.toml", format!("{toml_key} = 1\n")),
        ("amp info", "a.nam", format!("{{\"architecture\": {key}, \"config\": {{}}, \"weights\": []}}")),
        ("amp info", "b.nam", HOSTILE.to_owned()),
        ("amp info", "a.toml", format!("{toml_key} = 1\n")),
        ("amp info", "b.toml", format!("[amp]\nmodel = \"x\\u001b[2J.nam\"\n# {raw}\n")),
    ] {
        fs::write(scratch.path().join(name), content).unwrap();
        let run = scratch.run(&format!("{command} {name}"));
        assert_ne!(run.0.status.code(), Some(0), "{name}: {}", run.stdout());
        expect_harmless(&run, Passes::Text);
    }
}

/// Appends the hostile text to each text in `document` unless that makes it invalid. Returns the number of texts.
fn poison(document: &mut Value, path: &str, is_valid: &dyn Fn(&Value) -> bool) -> u32 {
    let children: Vec<String> = match document.pointer(path).unwrap() {
        Value::Object(fields) => fields.keys().map(|key| key.replace('~', "~0").replace('/', "~1")).collect(),
        Value::Array(items) => (0..items.len()).map(|index| index.to_string()).collect(),
        Value::String(text) => {
            let before = text.clone();
            *document.pointer_mut(path).unwrap() = format!("{before}{HOSTILE}").into();
            if is_valid(document) {
                return 1;
            }
            *document.pointer_mut(path).unwrap() = before.into();
            return 0;
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => return 0,
    };
    children.iter().map(|child| poison(document, &format!("{path}/{child}"), is_valid)).sum()
}

/// Copies a record or the document of a campaign with hostile texts. Returns true for a campaign.
fn write_poisoned(from: &Path, to: &Path) -> bool {
    let is_campaign = record::file::is_campaign(from);
    let is_valid = |document: &Value| {
        fs::write(to, document.to_string()).unwrap();
        if is_campaign { record::file::read_campaign(to).is_ok() } else { record::file::read(to).is_ok() }
    };
    let mut document: Value = serde_json::from_slice(&fs::read(from).unwrap()).unwrap();
    let poisoned = poison(&mut document, "", &is_valid);
    assert!(poisoned > 8, "only {poisoned} texts of {}", from.display());
    document[HOSTILE] = HOSTILE.into();
    assert!(is_valid(&document), "{}", from.display());
    is_campaign
}

#[test]
fn records_of_others_are_shown() {
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("../record/tests/records-0.1");
    let files: Vec<_> = fs::read_dir(records).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(!files.is_empty());
    for file in files {
        let scratch = Scratch::new();
        let is_campaign = write_poisoned(&file, &scratch.record_path());
        for command in ["show", "show --full", "show --json", "blame", "blame --json", "show --color always --full"] {
            let run = scratch.run(&format!("{command} a.punctual.json"));
            expect_harmless(&run, if command.contains("always") { Passes::Colours } else { Passes::Text });
            if command == "show --json" {
                serde_json::from_slice::<Value>(&run.0.stdout).unwrap();
            }
        }
        for ending in ["json", "csv", "hgrm", "hlog", "html", "md", "xml", "lava", "prom", "sarif"] {
            let run = scratch.run(&format!("show a.punctual.json --export b.{ending}"));
            // A policy with such a text contradicts the granted one, so the record is INVALID.
            let is_refused = is_campaign && !["html", "md", "xml"].contains(&ending);
            // A campaign without the records of its scenarios is INCONCLUSIVE.
            let accepted: &[i32] = if is_refused {
                &[64]
            } else if is_campaign {
                &[3]
            } else {
                &[0, 4]
            };
            assert!(run.0.status.code().is_some_and(|code| accepted.contains(&code)), "{}", run.stderr());
            expect_harmless(&run, Passes::Text);
            let exported = fs::read_to_string(scratch.path().join(format!("b.{ending}"))).unwrap_or_default();
            assert!(!exported.contains(is_hidden), "{ending} of {}", file.display());
        }
    }
}

#[test]
fn messages_and_answers_of_the_far_end_are_shown() {
    let hostile = "printf 'denied \\033[2J\\233 \\342\\200\\256\\n' >&2; ";
    let not_reached = Far::reached_by(&format!("{hostile}exit 255")).run("udp --samples 10 --no-record");
    not_reached.expect_status(1);
    expect_harmless(&not_reached, Passes::Text);
    assert!(not_reached.stderr().contains("denied \\u{1b}[2J\\x9b \\u{202e}\n"), "{}", not_reached.stderr());
    let greeting = "printf 'punctual-pair x86_64 - 9 8\\n'; read -r line; ";
    for answer in ["{\"failed\": \"no \\\\u001b[2J\\\\u202e\"}", "{\"\\\\u001b[2J\": 1}", "{\"\\033[2J"] {
        let script = format!("{greeting} printf '{answer}\\n'; sleep 1");
        let run = Far::reached_by(&script).run("--far-command x udp --samples 10 --no-record");
        run.expect_status(1);
        expect_harmless(&run, Passes::Text);
    }
}

#[test]
fn all_output_passes_the_filter() {
    // The filter itself, and the message of a failed allocation, which contains only a number.
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    let mut folders: Vec<_> = fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path().join("src")).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !["record/src/visible.rs", "sys/src/allocator.rs"].iter().any(|allowed| path.ends_with(allowed)) {
                let text = fs::read_to_string(&path).unwrap();
                found.extend(unfiltered(&text).map(|line| format!("{}: {line}", path.display())));
            }
        }
    }
    assert!(found.is_empty(), "use record::visible instead:\n{}", found.join("\n"));
}

/// The lines that write to standard output or error without the filter. Reports of skipped tests are allowed.
fn unfiltered(text: &str) -> impl Iterator<Item = &str> {
    let direct = ["println!(", "print!(", "io::stdout()", "io::stderr()", "Stdio::inherit"];
    text.lines().filter(move |line| !line.contains("SKIPPED") && direct.iter().any(|way| line.contains(way)))
}

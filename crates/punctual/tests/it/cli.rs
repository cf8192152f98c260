//! Errors of the command line: their messages and exit statuses.

use std::{
    fs::{self, File},
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
};

use super::harness::{PUNCTUAL, Scratch};

#[track_caller]
fn refused(status: i32, arguments: &str, error: &str) {
    let scratch = Scratch::new();
    let run = scratch.run(arguments);
    run.expect_status(status);
    let errors = run.stderr();
    assert!(errors.contains(error), "{arguments}\nexpected: {error}\ngot: {errors}");
    let left: Vec<_> = fs::read_dir(scratch.path()).unwrap().collect();
    assert!(left.is_empty(), "{arguments} left {left:?}");
}

#[test]
fn outputs_that_cannot_be_written_are_reported() {
    let scratch = Scratch::new();
    let full = scratch.punctual("--help").stdout(File::create("/dev/full").unwrap()).output().unwrap();
    let said = String::from_utf8_lossy(&full.stderr);
    assert_eq!(full.status.code(), Some(1), "{said}");
    assert!(said.starts_with("error: cannot write to standard output: No space left"), "{said}");
    for arguments in ["--help", "profiles"] {
        let mut closed = Command::new("sh");
        closed.args(["-c", &format!("exec \"$0\" {arguments} >&-")]).arg(PUNCTUAL);
        let closed = closed.current_dir(scratch.path()).output().unwrap();
        let said = String::from_utf8_lossy(&closed.stderr);
        assert_eq!(closed.status.code(), Some(1), "{said}");
        assert!(said.starts_with("error: cannot write to standard output: it is closed"), "{said}");
    }
    // The kernel ends a program that writes beyond `ulimit -f`, unless the program handles the signal.
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 0; exec \"$0\" generate schema run > schema.json"]);
    let limited = limited.arg(PUNCTUAL).current_dir(scratch.path()).output().unwrap();
    let said = String::from_utf8_lossy(&limited.stderr);
    assert_eq!(limited.status.code(), Some(1), "{said}");
    assert!(said.contains("File too large"), "{said}");
}

#[test]
fn endless_and_huge_files_are_refused() {
    let scratch = Scratch::new();
    let huge = scratch.path().join("huge.punctual.json");
    File::create(&huge).unwrap().set_len(1 << 32).unwrap();
    for (file, error) in [
        ("/dev/zero", "a device, not a regular file, pipe or terminal"),
        ("huge.punctual.json", "it is larger than 128 MiB, the most that is read"),
    ] {
        let said = scratch.run(&format!("show {file}")).expect_status(1).stderr();
        assert_eq!(said, format!("error: cannot read {file}: {error}\n"));
    }
}

#[test]
fn usage_errors_name_the_remedy_and_exit_with_64() {
    for (arguments, error) in [
        ("mesure", "measure"),
        ("measure timer --period 0s", "must be 1us to 1h"),
        ("measure timer --period 999ns", "must be 1us to 1h"),
        ("measure timer --period 61m", "must be 1us to 1h"),
        ("measure timer --period 1000", "1000us"),
        ("measure timer --duration 0s", "must be longer than 0"),
        ("measure timer --samples 0", "--samples"),
        ("measure timer --policy fifo:100", "the priority must be 1 to 99, e.g. fifo:90 (got `100`)"),
        ("measure timer --policy fast", "unknown policy `fast`"),
        ("measure threads --thread base=25", "25us"),
        ("measure threads --thread base=25us,prio=5", "use cpu=N or policy=POLICY"),
        ("measure threads --thread a=1ms --thread a=2ms", "two threads are called `a`"),
        ("measure threads --matrix --thread a=1ms", "--matrix takes two threads"),
        ("measure threads --matrix --thread a=1ms,cpu=0 --thread b=2ms", "leave out cpu="),
        ("measure threads --cpus 0", "--cpus needs --threads N or --matrix"),
        ("measure timer --no-record --load-cpus 0", "add --load, e.g. --load cpu"),
        ("measure process --load-cpus 0 1", "add --load, e.g. --load cpu"),
        ("pair host udp --far-load-cpus 0", "add --far-load, e.g. --far-load cpu"),
        ("measure process --period 1ms --period 2ms 1", "--period is given twice for all threads"),
        ("measure process --period a=1ms --period a=2ms 1", "--period is given twice for the same threads"),
        ("measure timer --duration 2min", "for example 2m"),
        ("measure threads --cell-duration 1s", "--matrix"),
        ("measure threads --threads 0", "--threads must be 1 to 256 (got 0)"),
        ("measure timer --clock wall", "use monotonic, realtime, tai or boottime"),
        ("measure timer --wait poll", "use nanosleep or timerfd"),
        ("measure timer --load cash", "cache"),
        ("measure timer --load switch:often", "switch"),
        ("measure timer --profile avb-klass-a", "avb-class-a"),
        (
            "measure timer --export result.xls",
            "must end in .json, .csv, .hgrm, .hlog, .html, .md, .xml, .lava, .prom, .sarif or .tex",
        ),
        ("check --export findings.xml", "must end in .html or .sarif"),
        ("check --explain cpu.govenor", "there is no finding cpu.govenor: did you mean cpu.governor?"),
        ("check --fail-on bad", "--fail-on must be warn, fail or never (got bad)"),
        ("check --for audio-48k-46", "the nearest is audio-48k-16"),
        ("latency loop --device hw:0 --export loop.prom", "must end in .json or .html"),
        ("measure timer --cpus 1-", "1-"),
        ("measure timer --samples 5 --endless", "--endless"),
        ("measure timer --no-record --load cpu --load idle", "idle"),
        ("profiles avb-klass-a", "avb-class-a"),
    ] {
        refused(64, arguments, error);
    }
}

#[test]
fn errors_of_the_machine_exit_with_1() {
    refused(1, "measure timer --cpus 4000", "CPU 4000");
    refused(1, "measure timer --load cpu --load-cpus 4000", "CPU 4000");
    refused(1, "measure timer --record /nonexistent/folder/a", "cannot write /nonexistent/folder/a.punctual.json");
    refused(1, "check --root /nonexistent", "no machine is recorded in /nonexistent");
    refused(1, "machine --root /dev/null --json", "no machine is recorded in /dev/null");
    refused(
        1,
        "measure timer --no-record --on-spike trace:/nonexistent/x",
        "--on-spike trace: cannot write /nonexistent/x-1",
    );
    refused(
        1,
        "measure timer --no-record --stop-on 1ms --stop-trace /nonexistent/x",
        "--stop-trace: cannot write /nonexistent/x",
    );
    let nobody = "--on-spike signal: process 4194305 cannot get a signal (No such process";
    refused(1, "measure timer --no-record --on-spike signal:USR1:4194305", nobody);
    refused(1, "measure timer --export /nonexistent/folder/a.csv", "cannot write /nonexistent/folder/a.csv");
    refused(1, "measure timer --clock tai --wait timerfd --no-record", "use --wait nanosleep");
    refused(1, "show nothing.punctual.json", "cannot read nothing.punctual.json");
    refused(1, "show /proc/version", "is in no format that punctual reads: cyclictest and oslat, JSON;");
}

#[test]
fn a_known_mistake_is_one_line() {
    let scratch = Scratch::new();
    for (arguments, instead) in [
        ("measure timer --interval=200", "use --period TIME, such as --period 1ms"),
        ("-p 90", "use punctual measure timer --policy fifo:N"),
        ("timer --duration 5s", "use `punctual measure timer --duration 5s`"),
        ("--full LAST", "use `punctual show LAST --full`"),
        ("report", "use `punctual show`"),
        ("mesure timer", "use `punctual measure timer`"),
        ("check eth0", "use `punctual check nic eth0`"),
        ("measure timer --full --quiet", "leave one out"),
        ("show", "name one, or run `punctual` first"),
        ("show a.html", "name its record, a *.punctual.json file"),
        (
            "measure process firefox",
            "start the program with `punctual measure process -- firefox`, or give the ID of a running one",
        ),
    ] {
        let said = scratch.run(arguments).expect_status(64).stderr();
        assert!(said.ends_with(&format!(": {instead}\n")) && said.lines().count() == 1, "{said}");
    }
    let folder = scratch.run("show .").expect_status(64).stderr();
    assert!(folder.contains(". is a folder without a campaign: name a *.punctual.json file"), "{folder}");
}

#[test]
fn lists_and_generators_print() {
    let scratch = Scratch::new();
    for (arguments, expected) in [
        ("--help", "Is this machine punctual enough"),
        ("--version", "punctual 0."),
        ("profiles", "avb-class-a"),
        ("profiles avb-class-a", "source"),
        ("loads", "switch"),
        ("machine", "kernel"),
        ("machine --json", "\"kernel\""),
        ("check --fail-on never --json", "\"findings\""),
        ("generate schema", "punctual.run/1"),
        ("generate completions bash", "_punctual"),
    ] {
        let run = scratch.run(arguments);
        run.expect_status(0);
        assert!(run.stdout().contains(expected), "{arguments}: {}", run.stdout());
        assert_eq!(run.stderr(), "", "{arguments}");
    }
    scratch.run("generate man man").expect_status(0);
    assert!(scratch.path().join("man/punctual-measure-timer.1").exists());
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let scratch = Scratch::new();
    let mut child = scratch.punctual("profiles").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

#[test]
fn the_schemas_in_the_repository_are_up_to_date() {
    for (of, committed) in [
        ("run", include_str!("../../../../docs/punctual.run-1.schema.json")),
        ("campaign", include_str!("../../../../docs/punctual.campaign-1.schema.json")),
        ("proof", include_str!("../../../../docs/punctual.proof-1.schema.json")),
        ("compare", include_str!("../../../../docs/punctual.compare-1.schema.json")),
        ("across", include_str!("../../../../docs/punctual.across-1.schema.json")),
    ] {
        let schema = Scratch::new().run(&format!("generate schema {of}")).stdout();
        assert_eq!(schema, committed, "run: punctual generate schema {of} > docs/punctual.{of}-1.schema.json");
    }
}

#[test]
fn the_table_of_options_is_up_to_date() {
    let page = Scratch::new().run("generate options").stdout();
    assert_eq!(page, include_str!("../../../../docs/options.md"), "run: punctual generate options > docs/options.md");
}

/// The pages themselves are tested with the definition.
#[test]
fn help_is_printed_for_each_way_to_ask() {
    let scratch = Scratch::new();
    let lines = |arguments: &str| scratch.run(arguments).expect_status(0).stdout().lines().count();
    for command in ["", "measure stream", "pair host stream", "amp play"] {
        let (full, short) = (lines(&format!("{command} --help")), lines(&format!("{command} -h")));
        assert!(full <= 60 && short <= 24 && short < full, "{command}: {full} and {short} lines");
    }
    assert_eq!(scratch.run("help measure udp").stdout(), scratch.run("measure udp --help").stdout());
    assert_eq!(scratch.run("measure udp -qh").stdout(), scratch.run("measure udp -h").stdout());
    let missing = scratch.run("measure");
    assert!(missing.expect_status(64).stderr().contains("Measure how late a thread wakes"), "{}", missing.stderr());
    // Colours only on a terminal.
    assert!(!scratch.run("--help").stdout().contains('\x1b'));
}

#[test]
fn errors_are_documents_with_json() {
    let scratch = Scratch::new();
    for (line, status) in [("show --json missing.punctual.json", 1), ("measure timer --json --period 0", 64)] {
        let run = scratch.run(line);
        run.expect_status(status);
        let error: serde_json::Value = serde_json::from_str(&run.stdout()).unwrap();
        assert_eq!(error["exit_status"], status, "{line}");
        let text = error["error"].as_str().unwrap();
        assert!(run.stderr().contains(text.lines().next().unwrap()), "{line}: {text}");
    }
    assert_eq!(scratch.run("show missing.punctual.json").stdout(), "");
}

#[test]
fn the_report_of_a_record_is_opened() {
    let scratch = Scratch::new();
    scratch.measure(0, "--cpus 0 --policy other --duration 200ms --blame=off");
    let report = scratch.path().join("a.punctual.html");
    let opener = scratch.path().join("xdg-open");
    let open = |script: &str| {
        fs::write(&opener, script).unwrap();
        fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = scratch.punctual("show --open a.punctual.json");
        command.env("PATH", format!("{}:/usr/bin:/bin", scratch.path().display()));
        command.output().unwrap()
    };
    assert_eq!(open("#!/bin/sh\necho \"$1\" > opened\n").status.code(), Some(0));
    assert_eq!(fs::read_to_string(scratch.path().join("opened")).unwrap(), "a.punctual.html\n");
    assert!(fs::read_to_string(&report).unwrap().starts_with("<!DOCTYPE html>"));
    let failed = open("#!/bin/sh\necho 'x-www-browser: not found' >&2\nexit 3\n");
    assert_eq!(failed.status.code(), Some(1));
    let said = String::from_utf8_lossy(&failed.stderr);
    assert!(said.ends_with("open it in a browser\n") && said.lines().count() == 1, "{said}");
    let named = scratch.run("show a.punctual.html").expect_status(64).stderr();
    assert_eq!(named, "error: a.punctual.html is a report, which cannot be read: name its record, a.punctual.json\n");
}

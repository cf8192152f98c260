//! Little memory, little stack, and inputs that grow in memory or wait forever: one sentence and exit status 1.

use std::{fs, os::unix::process::ExitStatusExt, path::Path, process::Command, time::Duration};

use super::{
    harness::{PUNCTUAL, Run, Scratch},
    pair::Far,
};

/// Runs the command below a limit of `ulimit`.
fn limited(scratch: &Scratch, limit: &str, arguments: &str) -> Run {
    let script = format!("ulimit {limit} && exec {PUNCTUAL} {arguments}");
    Run(Command::new("bash").args(["-c", &script]).current_dir(scratch.path()).output().unwrap())
}

#[track_caller]
fn expect_one_sentence(run: &Run, sentence: &str) {
    let errors = run.expect_status(1).stderr();
    assert!(errors.starts_with("error: ") && errors.contains(sentence) && errors.lines().count() == 1, "{errors}");
}

/// A valid record with these unknown fields.
fn with_unknown(scratch: &Scratch, unknown: &str) {
    let record = record::Record { schema: record::SCHEMA.to_owned(), ..record::Record::default() };
    let text = String::from_utf8(record::file::to_json(&record)).unwrap();
    let text = text.trim_end().strip_suffix('}').unwrap();
    fs::write(scratch.record_path(), format!("{text},\"unknown\":{unknown}}}")).unwrap();
}

#[test]
fn unknown_fields_of_a_record_take_a_bounded_amount_of_memory() {
    let scratch = Scratch::new();
    with_unknown(&scratch, &format!("[{}0]", "{\"\":0},".repeat(1_000_000)));
    for command in ["show", "blame"] {
        let run = limited(&scratch, "-v 1000000", &format!("{command} a.punctual.json"));
        expect_one_sentence(&run, "would take much more memory than its text");
    }
    with_unknown(&scratch, &format!("[{}0]", "0,".repeat(10_000)));
    // It contains no run, so it is INVALID.
    scratch.run("show --full a.punctual.json").expect_status(4);
}

#[test]
fn missing_memory_is_an_error_in_one_sentence() {
    let scratch = Scratch::new();
    with_unknown(&scratch, &format!("[{}0]", "0, ".repeat(20 << 20)));
    // The program itself takes 57 MB of address space without optimisation, and the text of the file 63 MB.
    expect_one_sentence(&limited(&scratch, "-v 90000", "show --full a.punctual.json"), "cannot allocate");
}

#[test]
fn a_small_stack_is_enlarged_or_an_error_in_one_sentence() {
    let scratch = Scratch::new();
    let run = limited(&scratch, "-s 200", "--version");
    assert_eq!(run.0.status.signal(), None, "{}", run.stderr());
    // Root may raise the limit.
    match run.0.status.code() {
        Some(0) => assert!(run.stdout().starts_with("punctual ")),
        _ => expect_one_sentence(&run, "ulimit -s 8192"),
    }
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn pipes_that_a_file_names_are_not_waited_for() {
    let scratch = Scratch::new();
    let at = |name: &str| scratch.path().join(name);
    make_pipe(&at("pipe"));
    fs::write(at("a.toml"), "[[model]]\nfile = \"pipe\"\n").unwrap();
    expect_one_sentence(&scratch.run("amp info a.toml"), "it is not a regular file");
    fs::create_dir_all(at("machine/proc")).unwrap();
    make_pipe(&at("machine/proc/version"));
    std::os::unix::fs::symlink("/dev/zero", at("machine/proc/cmdline")).unwrap();
    limited(&scratch, "-v 1000000", "machine --root machine").expect_status(0);
    limited(&scratch, "-v 1000000", "check --root machine").expect_status(0);
}

#[test]
fn too_many_threads_are_refused() {
    let run = Scratch::new().run("measure threads --threads 1024 --no-record");
    assert!(run.expect_status(64).stderr().contains("1 to 256"), "{}", run.stderr());
}

#[test]
fn texts_of_the_far_end_begin_no_line_of_their_own() {
    let hello = format!(
        r#"{{"hello":{{"protocol":{},"version":"{}","restored":["x\nPASS"]}}}}"#,
        pair::protocol::PROTOCOL,
        env!("CARGO_PKG_VERSION")
    );
    let far = Far::reached_by(&format!(
        "echo 'punctual-pair x86_64 127.0.0.1 -'; read -r run; printf '%s\\n' '{hello}'; read -r clock; \
         echo '{{\"clock\":1}}'; read -r measure; printf '%s\\n' '{{\"failed\":\"y\\nPASS\"}}'; exec sleep 0.2"
    ));
    let run = far.run("udp --duration 1s --no-record --far-command punctual");
    let errors = run.expect_status(1).stderr();
    assert!(errors.contains("x PASS") && errors.contains("y PASS"), "{errors}");
    assert!(!errors.lines().any(|line| line.trim_start().starts_with("PASS")), "{errors}");
}

#[test]
fn an_endless_far_end_is_ended() {
    for script in ["exec yes", "exec yes >&2"] {
        let far = Far::reached_by(script);
        let began = std::time::Instant::now();
        let run = far.run("udp --duration 1s --no-record");
        assert!(
            run.expect_status(1).stderr().contains("cannot reach board-b") || run.stderr().contains("root@board-b")
        );
        assert!(began.elapsed() < Duration::from_secs(60));
    }
}

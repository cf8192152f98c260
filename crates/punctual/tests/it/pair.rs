//! `pair`: runs of both ends, with a script in the place of ssh that runs the far command on this machine. Round trips
//! use loopback and the ordinary policy, so no rights are needed. Streams are tested in `rights/pair.rs`.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use record::{ClockTie, EndedBy, Record, State};
use stalls::{Stall, repeat_if_stalled};

use super::harness::{PUNCTUAL, Run, Scratch, Start, Started, signal, wait_until};

/// A folder with the script `reach`, which takes the place of ssh, and the temporary folder `far` of the far end.
pub struct Far(Scratch);

impl Far {
    /// A far end that this script starts; `$2` is the far command.
    pub fn reached_by(script: &str) -> Self {
        let scratch = Scratch::new();
        let at = |name: &str| scratch.path().join(name);
        fs::create_dir(at("far")).unwrap();
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o777)).unwrap();
        fs::set_permissions(at("far"), fs::Permissions::from_mode(0o777)).unwrap();
        let far = at("far");
        let head = format!("#!/bin/sh\nexport TMPDIR={} SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22'\n", far.display());
        fs::write(at("reach"), head + script + "\n").unwrap();
        fs::set_permissions(at("reach"), fs::Permissions::from_mode(0o755)).unwrap();
        Self(scratch)
    }

    /// A far end on this machine.
    pub fn here() -> Self {
        Self::reached_by("exec sh -c \"$2\"")
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn record(&self) -> Record {
        self.0.record()
    }

    /// `punctual pair --ssh reach board-b` with these arguments.
    pub fn pair(&self, arguments: &str) -> Command {
        self.0.punctual(&format!("pair --ssh {}/reach root@board-b {arguments}", self.path().display()))
    }

    pub fn run(&self, arguments: &str) -> Run {
        Run(self.pair(arguments).output().unwrap())
    }

    /// The process of the far end while it runs. Its command line names the folder of this test.
    pub fn process(&self) -> Option<u32> {
        let folder = self.path().join("far").to_string_lossy().into_owned();
        let is_far_end = |pid: &u32| {
            let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words: Vec<_> = command.split(|&byte| byte == 0).map(String::from_utf8_lossy).collect();
            words.iter().any(|word| word == "__far") && words.iter().any(|word| word.starts_with(&folder))
        };
        let pids =
            fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.into_iter().find(is_far_end)
    }

    #[track_caller]
    pub fn assert_nothing_is_left(&self) {
        wait_until("the far end has ended", || self.process().is_none());
        let folder = self.path().join("far");
        wait_until("its folder is empty", || fs::read_dir(&folder).unwrap().next().is_none());
    }

    /// Waits until the record of a run contains responses. A run without any would be invalid.
    pub fn wait_for_responses(&self) {
        let has_responses =
            |record: Record| record.series.iter().any(|s| s.kind.round_trip().is_some() && s.samples > 0);
        wait_until("the far end responds", || record::file::read(&self.0.record_path()).is_ok_and(has_responses));
    }

    /// Starts a run and waits until the far end responds.
    pub fn start(&self, arguments: &str) -> Started {
        let child = self.pair(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).start();
        self.wait_for_responses();
        assert!(self.process().is_some());
        child
    }
}

/// A stall that can delay a response beyond the timeout of a second.
const NO_RESPONSE: Stall = Stall::Ordinary(Duration::from_millis(200));

const COPY: &str = concat!("--far-binary ", env!("CARGO_BIN_EXE_punctual"));
const UDP: &str = "udp --full --policy other --receive-policy other --blame=off --record a";

#[test]
fn both_ends_of_round_trips_are_in_one_record() {
    repeat_if_stalled(NO_RESPONSE, round_trips_to_the_far_end);
}

fn round_trips_to_the_far_end() {
    let far = Far::here();
    let run = far.run(&format!("{COPY} --far-policy other {UDP} --samples 500 --period 2ms --export a.html"));
    run.expect_status(0);
    assert!(run.stderr().contains("copying punctual to board-b"), "{}", run.stderr());
    far.assert_nothing_is_left();
    let record = far.record();
    assert_eq!((record.state, record.validity.valid), (State::Complete, true), "{:?}", record.validity);
    let trips = record.series.iter().find_map(|series| series.kind.round_trip()).unwrap();
    let far_end = record.far.as_ref().expect("the far end");
    assert_eq!((far_end.host.as_str(), &far_end.lost), ("board-b", &None));
    assert_eq!(far_end.machine.kernel, record.machine.kernel);
    assert!(!far_end.findings.is_empty());
    assert_eq!(far_end.clock.tie, ClockTie::SameHost);
    let answered = far_end.answered.as_ref().unwrap();
    assert_eq!((answered.answered, trips.lost, answered.strangers), (trips.sent, 0, 0), "{answered:?}");
    assert!(answered.greetings > 0 && trips.sent > 100);
    assert_eq!((answered.address.as_str(), answered.granted.policy.as_str()), (trips.peer.as_str(), "other"));
    let value = serde_json::to_value(&record).unwrap();
    let validator = jsonschema::validator_for(&record::json_schema()).unwrap();
    assert!(validator.is_valid(&value));
    let page = run.stdout().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("Far end board-b") && page.contains("both ends are on one machine"), "{page}");
    assert!(page.contains("lost on the way out 0, on the way back 0"), "{page}");
    let html = fs::read_to_string(far.path().join("a.html")).unwrap();
    assert!(html.contains("<section id=\"far\">") && html.contains("Far end board-b"));
}

#[test]
fn an_installed_binary_is_not_copied() {
    let far = Far::here();
    let installed = far.path().join("bin");
    fs::create_dir(&installed).unwrap();
    std::os::unix::fs::symlink(PUNCTUAL, installed.join("punctual")).unwrap();
    let run = |options: &str, path: &str| {
        let mut command = far.pair(&format!("{options} --far-policy other {UDP} --samples 20"));
        let run = Run(command.env("PATH", format!("{path}:/usr/bin:/bin:/usr/sbin:/sbin")).output().unwrap());
        run.expect_status(0);
        assert!(!run.stderr().contains("copying"), "{}", run.stderr());
        assert_eq!(far.record().far.unwrap().lost, None);
    };
    // The same build in PATH; then a command that the user names.
    run(COPY, &installed.display().to_string());
    run(&format!("--far-command {PUNCTUAL}"), "/nowhere");
}

#[test]
fn a_lost_far_end_is_reported_and_the_record_is_kept() {
    let far = Far::here();
    let child = far.start(&format!("{COPY} --far-policy other {UDP} --endless"));
    let killed = Command::new("kill").args(["-KILL", &far.process().unwrap().to_string()]).status().unwrap();
    assert!(killed.success());
    let run = Run(child.wait_with_output().unwrap());
    run.expect_status(1);
    assert!(run.stderr().contains("the far end was lost: the connection ended"), "{}", run.stderr());
    assert!(run.stdout().contains("the far end on board-b was lost"), "{}", run.stdout());
    far.assert_nothing_is_left();
    let record = far.record();
    assert_eq!((record.state, record.ended_by), (State::Interrupted, Some(EndedBy::Failure)));
    assert!(!run.stdout().contains("SIG"), "no signal ended it: {}", run.stdout());
    let far_end = record.far.as_ref().unwrap();
    assert!(far_end.lost.is_some());
    assert_eq!(far_end.machine.kernel, record.machine.kernel, "known from its greeting");
    assert!(record.series.iter().any(|series| series.kind.round_trip().is_some()));
}

#[test]
fn a_killed_near_end_leaves_nothing_on_the_far_machine() {
    repeat_if_stalled(NO_RESPONSE, kill_the_near_end);
}

fn kill_the_near_end() {
    let far = Far::here();
    let mut child = far.start(&format!("{COPY} --far-policy other {UDP} --endless"));
    assert!(fs::read_dir(far.path().join("far")).unwrap().next().is_none(), "the copy removes itself when it starts");
    signal(&child, "KILL");
    child.wait().unwrap();
    let began = Instant::now();
    far.assert_nothing_is_left();
    // The far end has a second to end by itself; the rest is for stalls of this machine.
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
}

#[test]
fn ctrl_c_ends_both_ends() {
    repeat_if_stalled(NO_RESPONSE, interrupt_both_ends);
}

fn interrupt_both_ends() {
    let far = Far::here();
    let child = far.start(&format!("{COPY} --far-policy other {UDP} --endless"));
    signal(&child, "INT");
    Run(child.wait_with_output().unwrap()).expect_status(0);
    far.assert_nothing_is_left();
    let record = far.record();
    let far_end = record.far.as_ref().unwrap();
    assert_eq!((record.state, &far_end.lost), (State::Interrupted, &None));
    let trips = record.series.iter().find_map(|series| series.kind.round_trip()).unwrap();
    assert_eq!(far_end.answered.as_ref().unwrap().answered, trips.sent - trips.lost);
}

/// The error of a run that cannot measure. It must leave nothing on either machine.
#[track_caller]
fn refused(far: &Far, arguments: &str) -> String {
    let run = far.run(&format!("{arguments} udp --record a"));
    run.expect_status(1);
    assert!(!far.path().join("a.punctual.json").exists());
    far.assert_nothing_is_left();
    run.stderr()
}

#[test]
fn a_far_end_that_cannot_start_is_reported_with_the_remedy() {
    let errors = refused(&Far::reached_by("echo 'Permission denied (publickey).' >&2; exit 255"), "");
    assert!(
        errors.contains("Permission denied (publickey).\n") && errors.contains("ended with exit status 255"),
        "{errors}"
    );
    assert!(errors.contains("root@board-b true"), "{errors}");
    let run = Scratch::new().run("pair --ssh no-such-ssh board-b udp --no-record");
    run.expect_status(1);
    assert!(run.stderr().contains("`no-such-ssh` is not installed"), "{}", run.stderr());
    // A machine of another architecture.
    let arm = Far::reached_by(
        "mkdir -p bin; printf '#!/bin/sh\\necho aarch64\\n' >bin/uname; chmod +x bin/uname; PATH=$PWD/bin:$PATH; exec sh -c \"$2\"",
    );
    let errors = refused(&arm, "");
    assert!(
        errors.contains("no punctual for aarch64, which board-b is") && errors.contains("dist/punctual-aarch64"),
        "{errors}"
    );
    let errors = refused(&arm, COPY);
    assert!(errors.contains("does not run on board-b, which is aarch64"), "{errors}");
    let errors = refused(&Far::here(), "--far-command /nowhere/punctual");
    assert!(
        errors.contains("punctual did not start on board-b (the connection ended, with exit status 127)"),
        "{errors}"
    );
}

/// The build of the tests has shared libraries, which a far end of the same system has, too.
#[test]
fn a_binary_with_shared_libraries_is_copied_where_it_runs() {
    let far = Far::here();
    let run = Run(far
        .pair(&format!("--far-policy other {UDP} --samples 20"))
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .output()
        .unwrap());
    run.expect_status(0);
    assert!(run.stderr().contains("copying punctual to board-b"), "{}", run.stderr());
    assert_eq!(far.record().far.unwrap().lost, None);
    // The name of a loader that no machine has.
    let mut bytes = fs::read(PUNCTUAL).unwrap();
    let loader = bytes.windows(9).position(|window| window == b"/ld-linux").expect("the build of the tests is dynamic");
    bytes[loader..loader + 9].copy_from_slice(b"/no-linux");
    let other = Far::here();
    let foreign = other.path().join("foreign");
    fs::write(&foreign, bytes).unwrap();
    let errors = refused(&other, &format!("--far-binary {}", foreign.display()));
    assert!(errors.contains("needs shared libraries, and did not start on board-b"), "{errors}");
    assert!(errors.contains("`make dist`, and add --far-binary dist/punctual-"), "{errors}");
}

/// Mistakes of `pair interrupt`, here and at the far end. Interrupts of a far machine are measured in the lab.
#[test]
fn interrupts_that_cannot_be_measured_are_refused() {
    let far = Far::here();
    for (status, arguments, expected) in [
        (64, "", "--source"),
        (64, "--source hpet --period 3ms", "choose a period such as 1ms"),
        (64, "--source hpet --far-nic eee=off", "--far-nic eee=off has no effect on interrupts"),
        (64, "--source gpio:0/1 --answer 0/2", "--answer needs --judge"),
        (64, "--source gpio:0/1 --answer 0/2 --judge /dev/ttyNONE --period 10us", "the judge asks every 50us to 10s"),
        (1, "--source gpio:0/1 --answer 0/2 --judge /dev/ttyNONE", "cannot open the judge at /dev/ttyNONE"),
        (1, "--source pps:pps77", "board-b: cannot use /dev/pps77"),
        (1, "--source iio:77", "board-b: no iio:device77"),
        (1, "--source pps:pps77 --far-cpu 4095", "board-b: CPU 4095 is not on this machine"),
    ] {
        let run = far.run(&format!("{COPY} interrupt {arguments} --record a --quiet"));
        let errors = run.expect_status(status).stderr();
        assert!(errors.contains(expected) && errors.lines().count() == 1, "{arguments}: {errors}");
        assert!(!far.path().join("a.punctual.json").exists());
    }
    far.assert_nothing_is_left();
}

#[test]
fn the_far_end_refuses_an_address_that_it_does_not_have() {
    let far = Far::here();
    let run = far.run(&format!("{COPY} --far-policy other {UDP} --to 192.0.2.77"));
    run.expect_status(1);
    assert!(run.stderr().contains("board-b: cannot answer on 192.0.2.77:7125"), "{}", run.stderr());
    far.assert_nothing_is_left();
}

#[test]
fn refuses_a_far_end_of_another_version() {
    let far = Far::here();
    let other = far.path().join("other");
    let hello = r#"{"hello":{"protocol":1,"version":"0.0.1"}}"#;
    fs::write(&other, format!("#!/bin/sh\necho '{hello}'\ncat >/dev/null\n")).unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).unwrap();
    let errors = refused(&far, &format!("--far-command {}", PathBuf::from(&other).display()));
    assert!(errors.contains("punctual on board-b has version 0.0.1, and here it has"), "{errors}");
    fs::write(&other, "#!/bin/sh\necho '{\"hullo\":1}'\ncat >/dev/null\n").unwrap();
    let errors = refused(&far, &format!("--far-command {}", other.display()));
    assert!(errors.contains("it sent an invalid message"), "{errors}");
}

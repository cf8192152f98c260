//! Outside judges: a judge of software at a pseudo terminal takes the place of a board.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Stdio},
    time::Duration,
};

use judge::{
    latmon::{Message, Request},
    latmon_client::LatmonClient,
    simulated::{Outcome, SimulatedBoard},
};

use crate::harness::{Scratch, signal, wait_until};

/// Ends a server that a failed test leaves.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn latmus_measures_with_the_judge_of_punctual() {
    let board = SimulatedBoard::start(|question| match question % 10 {
        0 => Outcome::Miss,
        digit => Outcome::Answer(digit * 125),
    });
    let board = board.unwrap();
    let scratch = Scratch::new();
    let mut command = scratch.punctual(&format!("judge serve {},115200 --bind 127.0.0.1:0", board.path()));
    let mut server = Server(command.stderr(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(server.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    let first = lines.next().unwrap();
    let port = first.strip_prefix("listening on 127.0.0.1:").and_then(|rest| rest.split(' ').next()).unwrap();
    let mut client = LatmonClient::connect("127.0.0.1", port.parse().unwrap(), "server").unwrap();
    client.start(Request { period_us: 1000, cells: 200 }).unwrap();
    let (mut samples, mut overruns, mut cells) = (0, 0, None);
    wait_until("the histogram", || {
        for message in client.messages(Duration::from_millis(100)).unwrap() {
            match message {
                Message::Bulk(bulk) => {
                    let is_first = samples == 0;
                    samples += bulk.samples;
                    overruns += bulk.overruns;
                    if is_first {
                        client.stop().unwrap();
                    }
                }
                Message::Cells(all) => cells = Some(all),
                Message::Contradiction(bulk) => panic!("{bulk:?}"),
            }
        }
        cells.is_some()
    });
    let cells = cells.unwrap();
    assert_eq!(cells.iter().sum::<u64>(), u64::from(samples));
    assert!(cells.iter().enumerate().all(|(cell, count)| *count == 0 || (1..=9).contains(&cell)), "{cells:?}");
    assert!(overruns > 0 && overruns.abs_diff(samples / 9) <= 1, "{overruns} of {samples}");
    drop(client);
    let ended = lines.find(|line| line.starts_with("run ended: ")).unwrap();
    assert!(ended.ends_with(&format!("{overruns} without an answer")), "{ended}");
    signal(&server.0, "INT");
    assert_eq!(server.0.wait().unwrap().code(), Some(0));
}

#[test]
fn mistakes_have_a_remedy_and_a_status() {
    let scratch = Scratch::new();
    for (status, arguments, expected) in [
        (64, "judge serve board", "must be a serial line, e.g. /dev/ttyACM0"),
        (1, "judge serve /dev/ttyNONE", "connect the judge; `ls /dev/ttyACM* /dev/ttyUSB*` lists serial lines"),
        (1, "judge serve /dev/null", "cannot set /dev/null to 1000000 bit/s"),
        (64, "measure interrupt --source gpio:0/1 --judge /dev/ttyACM0", "--judge needs --answer"),
        (
            64,
            "measure interrupt --source gpio:0/1 --answer 0/2 --judge a/b",
            "`a/b` is not a judge: write a serial line",
        ),
        (64, "measure interrupt --source hpet --answer 0/2 --judge board", "a judge asks on a GPIO line"),
        (
            64,
            "measure interrupt --source gpio:0/1 --answer 0/2 --judge board --period 2s",
            "the judge asks every 1us to 1s",
        ),
    ] {
        let run = scratch.run(arguments);
        let errors = run.expect_status(status).stderr();
        assert!(errors.contains(expected) && errors.lines().count() == 1, "{arguments}: {errors}");
    }
}

//! What the server's other clients learn of latencies: those of its card, and how late resampling makes what is played.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Child, Command},
};

use amp::resample::ResampledInsert;

use super::{Guitar, PERIOD, RATE_HZ, Scratch, Server, render, signal, wait_until};
use crate::browser::http;

/// Of the model that has to be resampled, Hz.
const OTHER_HZ: u32 = 44_100;

/// Models that let all through, at the server's rate and at the other.
fn wires() -> Scratch {
    let scratch = Scratch::new();
    for (name, rate_hz) in [("own.nam", RATE_HZ), ("other.nam", OTHER_HZ)] {
        let wire = format!(
            r#"{{"version": "0.5.4", "architecture": "Linear", "sample_rate": {rate_hz},
                "config": {{"receptive_field": 1, "bias": false}}, "weights": [1]}}"#
        );
        fs::write(scratch.path().join(name), wire).unwrap();
    }
    scratch
}

/// What resampling there and back takes.
fn resampling() -> i64 {
    ResampledInsert::new(RATE_HZ, OTHER_HZ).unwrap().delay() as i64
}

impl Server {
    /// Least and largest latency of a port, `capture` from where its sound comes from, or `playback` to where it goes.
    fn latency(&self, port: &str, way: &str) -> Option<[i64; 2]> {
        let listed = self.of(Command::new("jack_lsp").arg("-l")).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        let told = listed.lines().skip_while(|line| *line != port).skip(1).find(|line| line.contains(way))?;
        let (_, range) = told.split_once('[')?;
        let mut frames = range.split_whitespace().map_while(|word| word.parse().ok());
        Some([frames.next()?, frames.next()?])
    }

    /// Waits until what passes through us is so much later than where it comes from, and so much before where it goes to, as
    /// the ports tell.
    fn expects(&self, late: i64) {
        let ways = [
            ("punctual:left", "system:capture_1", "capture"),
            ("punctual:right", "system:capture_1", "capture"),
            ("punctual:in", "system:playback_1", "playback"),
        ];
        wait_until(&format!("{late} frames are told"), || {
            ways.iter().all(|(port, end, way)| {
                let (told, end) = (self.latency(port, way), self.latency(end, way));
                told.is_some() && told == end.map(|range| range.map(|frames| frames + late))
            })
        });
    }
}

fn end(playing: Child) -> String {
    signal(&playing, "INT");
    let ended = playing.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    String::from_utf8(ended.stdout).unwrap()
}

#[test]
fn others_learn_how_late_what_is_played_is_also_when_a_preset_changes_that() {
    let Some(server) = Server::start("late") else { return };
    let scratch = wires();
    fs::create_dir(scratch.path().join("presets")).unwrap();
    for (preset, model) in [("1.toml", "own.nam"), ("2.toml", "other.nam")] {
        fs::write(scratch.path().join("presets").join(preset), format!("[[model]]\nfile = '../{model}'\n")).unwrap();
    }
    let pedal = scratch.path().join("pedal");
    assert!(Command::new("mkfifo").arg(&pedal).status().unwrap().success());
    let playing = server.start_command(&scratch, "amp play --device jack --presets presets --midi pedal --quiet");
    server.expects(0);
    // Every client that comes to ask or goes makes the server ask all anew; this one stays.
    let (listener, _) = Guitar::join(&server);
    listener.connect("punctual:left", "guitar:in").unwrap();
    let [_, from_card] = server.latency("system:capture_1", "capture").unwrap();
    for (program, late) in [(1, resampling()), (0, 0), (1, resampling())] {
        fs::write(&pedal, [0xc0, program]).unwrap();
        wait_until("it is told unasked", || i64::from(listener.latency_frames()) == from_card + late);
    }
    drop(listener);
    server.expects(resampling());
    // An output that leads nowhere is no shorter way.
    let wire = ["punctual:right", "system:playback_2"];
    assert!(server.of(Command::new("jack_disconnect").args(wire)).output().unwrap().status.success());
    wait_until("it is cut", || !server.connections().contains("punctual:right\n   system:playback_2"));
    server.expects(resampling());

    let ends = [server.latency("system:capture_1", "capture"), server.latency("system:playback_1", "playback")];
    let all: i64 = ends.into_iter().flatten().map(|[_, most]| most).sum::<i64>() + resampling();
    let told = end(playing);
    assert!(told.contains(&format!("latency  {all} frames, ")), "ours is counted once: {told}");
}

#[test]
fn what_is_told_from_the_beginning_is_what_is_heard() {
    let Some(server) = Server::start("heard") else { return };
    let scratch = wires();
    let playing = server.start_command(&scratch, "amp play --device jack --model other.nam --quiet");
    server.expects(resampling());
    end(playing);

    let (_guitar, heard) = Guitar::join(&server);
    let play = "amp play --device jack:guitar --neutral --model other.nam --quiet";
    let playing = server.start_command(&scratch, play);
    wait_until("it is connected", || server.connections().contains("punctual:left\n   guitar:in"));
    // Where its begin falls between two samples of the other rate differs from time to time.
    let (later, off) = heard.nearest(&render(&scratch, "other.nam"));
    assert_eq!(later % PERIOD, resampling() as usize, "{off} off");
    assert!(off < 0.05, "{off} off");
    end(playing);
}

#[test]
fn others_learn_it_from_the_page_as_well() {
    let Some(server) = Server::start("page") else { return };
    let scratch = wires();
    let mut serving = server.start_command(&scratch, "amp serve . --device jack --port 0");
    let mut url = String::new();
    BufReader::new(serving.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let port = url.trim().trim_end_matches('/').rsplit_once(':').unwrap().1.parse().unwrap();
    server.expects(0);
    let choice = r#"{"what":"model1","file":"other.nam"}"#;
    let (status, said) = http(port, "POST", "/choose", &[("Content-Type", "application/json")], choice);
    assert_eq!(status, 200, "{said}");
    server.expects(resampling());
    end(serving);
}

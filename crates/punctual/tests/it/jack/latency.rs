//! The latencies that other clients of the server see: those of the card and of resampling.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Child, Command},
};

use amp::resample::ResampledInsert;

use super::{Guitar, PERIOD, RATE_HZ, Scratch, Server, render, signal, wait_until};
use crate::browser::http;

/// The sample rate of the model that needs resampling, Hz.
const OTHER_HZ: u32 = 44_100;

/// Two models that change nothing, at the server's sample rate and at the other one.
fn identity_models() -> Scratch {
    let scratch = Scratch::new();
    for (name, rate_hz) in [("own.nam", RATE_HZ), ("other.nam", OTHER_HZ)] {
        let model = format!(
            r#"{{"version": "0.5.4", "architecture": "Linear", "sample_rate": {rate_hz},
                "config": {{"receptive_field": 1, "bias": false}}, "weights": [1]}}"#
        );
        fs::write(scratch.path().join(name), model).unwrap();
    }
    scratch
}

/// The latency of resampling in both directions, frames.
fn resampling_frames() -> i64 {
    i64::try_from(ResampledInsert::new(RATE_HZ, OTHER_HZ).unwrap().delay()).unwrap()
}

impl Server {
    /// The least and the largest latency of a port: its `capture` latency from the source, or its `playback` latency to
    /// the destination.
    fn latency(&self, port: &str, direction: &str) -> Option<[i64; 2]> {
        let listed = self.of(Command::new("jack_lsp").arg("-l")).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        let stdout = listed.lines().skip_while(|line| *line != port).skip(1).find(|line| line.contains(direction))?;
        let (_, range) = stdout.split_once('[')?;
        let mut frames = range.split_whitespace().map_while(|word| word.parse().ok());
        Some([frames.next()?, frames.next()?])
    }

    /// Waits until each of our ports has the latency of the card plus this many frames.
    fn wait_for_latency(&self, frames: i64) {
        let ports = [
            ("punctual:left", "system:capture_1", "capture"),
            ("punctual:right", "system:capture_1", "capture"),
            ("punctual:in", "system:playback_1", "playback"),
        ];
        wait_until(&format!("a latency of {frames} frames"), || {
            ports.iter().all(|(port, card, direction)| {
                let (ours, card) = (self.latency(port, direction), self.latency(card, direction));
                ours.is_some() && ours == card.map(|range| range.map(|latency| latency + frames))
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
fn other_clients_see_the_latency_of_each_preset() {
    let Some(server) = Server::start("late") else { return };
    let scratch = identity_models();
    fs::create_dir(scratch.path().join("presets")).unwrap();
    for (preset, model) in [("1.toml", "own.nam"), ("2.toml", "other.nam")] {
        fs::write(scratch.path().join("presets").join(preset), format!("[[model]]\nfile = '../{model}'\n")).unwrap();
    }
    let pedal = scratch.path().join("pedal");
    assert!(Command::new("mkfifo").arg(&pedal).status().unwrap().success());
    let playing = server.start_command(&scratch, "amp play --device jack --presets presets --midi pedal --quiet");
    server.wait_for_latency(0);
    // The server recomputes all latencies when a client connects or leaves, so this client stays.
    let (listener, _) = Guitar::join(&server);
    listener.connect("punctual:left", "guitar:in").unwrap();
    let [_, from_card] = server.latency("system:capture_1", "capture").unwrap();
    for (program, late) in [(1, resampling_frames()), (0, 0), (1, resampling_frames())] {
        fs::write(&pedal, [0xc0, program]).unwrap();
        wait_until("the client is notified", || i64::from(listener.latency_frames()) == from_card + late);
    }
    drop(listener);
    server.wait_for_latency(resampling_frames());
    // An unconnected output does not shorten the latency.
    let ports = ["punctual:right", "system:playback_2"];
    assert!(server.of(Command::new("jack_disconnect").args(ports)).output().unwrap().status.success());
    wait_until("the port is disconnected", || !server.connections().contains("punctual:right\n   system:playback_2"));
    server.wait_for_latency(resampling_frames());

    let ends = [server.latency("system:capture_1", "capture"), server.latency("system:playback_1", "playback")];
    let all: i64 = ends.into_iter().flatten().map(|[_, most]| most).sum::<i64>() + resampling_frames();
    let stdout = end(playing);
    let all = record::grouped(all.cast_unsigned());
    assert!(stdout.contains(&format!("latency  {all} frames, ")), "our latency must count once: {stdout}");
}

#[test]
fn the_latency_of_unconnected_ports_is_unknown() {
    let Some(server) = Server::start("alone") else { return };
    let scratch = identity_models();
    let playing = server.start_command(&scratch, "amp play --device jack:none --model own.nam --quiet");
    wait_until("the client plays", || server.connections().contains("punctual:right"));
    let stdout = end(playing);
    assert!(stdout.contains("latency  unknown, because the JACK ports are not connected"), "{stdout}");
}

#[test]
fn the_reported_latency_is_the_measured_one() {
    let Some(server) = Server::start("heard") else { return };
    let scratch = identity_models();
    let playing = server.start_command(&scratch, "amp play --device jack --model other.nam --quiet");
    server.wait_for_latency(resampling_frames());
    end(playing);

    let (_guitar, heard) = Guitar::join(&server);
    let play = "amp play --device jack:guitar --neutral --model other.nam --quiet";
    let playing = server.start_command(&scratch, play);
    wait_until("the ports are connected", || server.connections().contains("punctual:left\n   guitar:in"));
    // The position of the first sample between two samples of the other rate differs from run to run.
    let (later, off) = heard.nearest(&render(&scratch, "other.nam"));
    assert_eq!(later % PERIOD, usize::try_from(resampling_frames()).unwrap(), "{off} off");
    assert!(off < 0.05, "{off} off");
    end(playing);
}

#[test]
fn other_clients_see_the_latency_of_a_choice_on_the_web_page() {
    let Some(server) = Server::start("page") else { return };
    let scratch = identity_models();
    let mut serving = server.start_command(&scratch, "amp serve . --device jack --port 0");
    let mut url = String::new();
    BufReader::new(serving.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let port = url.trim().trim_end_matches('/').rsplit_once(':').unwrap().1.parse().unwrap();
    server.wait_for_latency(0);
    let choice = r#"{"what":"model1","file":"other.nam"}"#;
    let (status, body) = http(port, "POST", "/choose", &[("Content-Type", "application/json")], choice);
    assert_eq!(status, 200, "{body}");
    server.wait_for_latency(resampling_frames());
    end(serving);
}

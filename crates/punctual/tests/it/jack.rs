//! JACK: a server with the dummy driver, and a client that records the output of the program.

mod latency;

use std::{
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
};

use hound::{SampleFormat, WavReader, WavSpec, WavWriter};
use sys::jack::{Client, Events, Period, Process};

use super::harness::{Scratch, signal, skip, wait_until};

const RATE_HZ: u32 = 48_000;
const PERIOD: usize = 256;

/// A server with a unique name. It waits for its clients, so no sample is lost on a busy machine.
struct Server {
    child: Child,
    name: String,
    _only: MutexGuard<'static, ()>,
}

/// JACK's library supports one server in a process: clients of two servers disturb each other.
static ONLY: Mutex<()> = Mutex::new(());

impl Server {
    /// Starts a server; `None` if JACK is not installed.
    fn start(name: &str) -> Option<Self> {
        let only = ONLY.lock().unwrap_or_else(PoisonError::into_inner);
        let name = format!("punctual-{name}-{}", std::process::id());
        let Ok(child) = Self::spawn(&name) else {
            skip("JACK is not installed: sudo apt-get install jackd2");
            return None;
        };
        let server = Self { child, name, _only: only };
        server.wait();
        Some(server)
    }

    fn spawn(name: &str) -> std::io::Result<Child> {
        let options = format!("-n {name} -r -S -t 20000 -d dummy -r {RATE_HZ} -p {PERIOD} -C 2 -P 2");
        let mut command = Command::new("jackd");
        command.args(options.split(' ')).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    }

    fn wait(&self) {
        wait_until("the server responds", || Client::open("ready", Some(&self.name)).is_ok());
    }

    /// Makes a command use this server.
    fn of<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("JACK_DEFAULT_SERVER", &self.name)
    }

    fn run(&self, scratch: &Scratch, arguments: &str) -> (i32, String, String) {
        let run = self.of(&mut scratch.punctual(arguments)).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (run.status.code().unwrap(), text(run.stdout), text(run.stderr))
    }

    /// Starts a command that uses this server.
    fn start_command(&self, scratch: &Scratch, arguments: &str) -> Child {
        let mut command = scratch.punctual(arguments);
        self.of(&mut command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The connections between ports, as `jack_lsp -c` lists them.
    fn connections(&self) -> String {
        let listed = self.of(Command::new("jack_lsp").arg("-c")).output().unwrap();
        String::from_utf8(listed.stdout).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // JACK allows eight servers. The entry of a killed server can only be reused under its name.
        if self.child.try_wait().unwrap().is_some() && !std::thread::panicking() {
            self.child = Self::spawn(&self.name).unwrap();
            self.wait();
        }
        if self.child.try_wait().unwrap().is_none() {
            signal(&self.child, "TERM");
            let _ = self.child.wait();
        }
    }
}

/// A client that sends a signal on request and records its input from then on.
struct Guitar {
    signal: Vec<f32>,
    heard: Arc<Heard>,
}

impl Guitar {
    /// A client that sends the melody.
    fn join(server: &Server) -> (Client, Arc<Heard>) {
        let heard = Arc::new(Heard::default());
        let mut guitar = Client::open("guitar", Some(&server.name)).unwrap();
        guitar.activate(Box::new(Self { signal: melody(), heard: heard.clone() }), Arc::new(IgnoreEvents)).unwrap();
        (guitar, heard)
    }
}

#[derive(Default)]
struct Heard {
    go: AtomicBool,
    periods: AtomicUsize,
    samples: Mutex<Vec<f32>>,
}

impl Process for Guitar {
    fn period(&mut self, period: &mut Period<'_>) {
        self.heard.periods.fetch_add(1, Relaxed);
        let go = self.heard.go.load(Relaxed);
        let mut heard = self.heard.samples.lock().unwrap();
        period.play(|input, left, right| {
            for ((input, left), right) in input.iter().zip(left).zip(right) {
                (*left, *right) = (0.0, 0.0);
                if go {
                    *left = self.signal.get(heard.len()).copied().unwrap_or(0.0);
                    heard.push(*input);
                }
            }
        });
    }
}

/// The events of the recording client do not matter.
struct IgnoreEvents;

impl Events for IgnoreEvents {
    fn xrun(&self) {}
    fn rate(&self, _: u32) {}
    fn ended(&self) {}
    fn panicked(&self) {}
}

impl Heard {
    /// Sends the signal again; returns after how many samples `expected` was recorded, bit for bit.
    fn delay_of(&self, expected: &[f32]) -> usize {
        let (nearest, worst) = self.nearest(expected);
        assert_eq!(worst, 0.0, "at {nearest}, of {}", expected.len());
        nearest
    }

    /// Sends the signal again; returns the delay in samples at which the recording is nearest to `expected`, and the
    /// largest difference there.
    fn nearest(&self, expected: &[f32]) -> (usize, f32) {
        self.go.store(false, Relaxed);
        let before = self.periods.load(Relaxed);
        wait_until("the client is silent", || self.periods.load(Relaxed) > before + 40);
        self.samples.lock().unwrap().clear();
        self.go.store(true, Relaxed);
        let enough = expected.len() + 8 * PERIOD;
        wait_until("the whole signal is recorded", || self.samples.lock().unwrap().len() >= enough);
        let heard = self.samples.lock().unwrap();
        let worst = |at: usize| {
            heard[at..].iter().zip(expected).map(|(heard, expected)| (heard - expected).abs()).fold(0.0, f32::max)
        };
        let nearest = (0..8 * PERIOD).min_by(|&a, &b| worst(a).total_cmp(&worst(b))).unwrap();
        (nearest, worst(nearest))
    }
}

/// A test signal: decaying sine tones.
fn melody() -> Vec<f32> {
    (0..12_000).map(|n| 0.4 * (n as f32 * 0.02).sin() * (-((n % 3000) as f32) / 900.0).exp()).collect()
}

/// A folder with a model, and the output of the model for the melody.
fn rendered() -> (Scratch, Vec<f32>) {
    let scratch = Scratch::new();
    let vectors = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../amp/tests/vectors");
    std::fs::copy(vectors.join("wn_a1_nano.nam"), scratch.path().join("nano.nam")).unwrap();
    let wet = render(&scratch, "nano.nam");
    (scratch, wet)
}

/// The output of a model for the melody.
fn render(scratch: &Scratch, model: &str) -> Vec<f32> {
    let spec = WavSpec { channels: 1, sample_rate: RATE_HZ, bits_per_sample: 32, sample_format: SampleFormat::Float };
    let mut dry = WavWriter::create(scratch.path().join("dry.wav"), spec).unwrap();
    melody().iter().for_each(|&sample| dry.write_sample(sample).unwrap());
    dry.finalize().unwrap();
    scratch.run(&format!("amp render dry.wav wet.wav --neutral --model {model}")).expect_status(0);
    WavReader::open(scratch.path().join("wet.wav")).unwrap().into_samples().map(Result::unwrap).collect()
}

#[test]
fn live_output_equals_rendered_output_for_two_period_sizes() {
    let Some(server) = Server::start("exact") else { return };
    let (scratch, wet) = rendered();
    let (_guitar, heard) = Guitar::join(&server);
    let playing = server.start_command(&scratch, "amp play --device jack:guitar --neutral --model nano.nam --quiet");
    wait_until("the ports are connected", || server.connections().contains("punctual:left\n   guitar:in"));
    // A loop of two clients delays the signal by one period or by none.
    assert!(heard.delay_of(&wet).is_multiple_of(PERIOD));
    assert!(server.of(Command::new("jack_bufsize").arg("64")).output().unwrap().status.success());
    assert!(heard.delay_of(&wet).is_multiple_of(64));
    signal(&playing, "INT");
    let ended = playing.wait_with_output().unwrap();
    let stdout = String::from_utf8(ended.stdout).unwrap();
    assert_eq!(ended.status.code(), Some(0), "{stdout}");
    assert!(stdout.contains("JACK, periods of 64 frames at 48000 Hz") && stdout.contains("xruns    "), "{stdout}");
}

#[test]
fn the_card_is_connected_and_the_end_of_the_server_is_reported() {
    let Some(mut server) = Server::start("card") else { return };
    let (scratch, _) = rendered();
    let (status, listed, _) = server.run(&scratch, "amp devices");
    assert_eq!(status, 0, "{listed}");
    assert!(listed.contains("playback jack: JACK, system:playback_1, system:playback_2"), "{listed}");
    assert!(listed.contains("FLOAT; 48000 Hz; periods of 256 frames"), "{listed}");

    for (arguments, error) in [
        ("--rate 44100", "runs with 48000, not 44100: leave out --rate"),
        ("--frames 64", "runs with 256, not 64: leave out --frames"),
        ("--input 3", "has only 2 ports of a card to capture from: choose --input 1 to 2"),
        ("--device jack:nobody", "no port of `nobody` to capture from (available: system:capture_1"),
    ] {
        let device = if arguments.contains("--device") { "" } else { "--device jack" };
        let (status, _, stderr) = server.run(&scratch, &format!("amp play --model nano.nam {device} {arguments}"));
        assert_eq!(status, 1, "{stderr}");
        assert!(stderr.contains(error) && stderr.lines().count() == 1, "{stderr}");
    }

    // A connection within JACK delays the signal by one period.
    let (_, found, stderr) =
        server.run(&scratch, "latency loop --device jack:punctual --rounds 3 --json --quiet --no-record");
    let record: serde_json::Value = serde_json::from_str(&found).unwrap_or_else(|_| panic!("{stderr}"));
    let found = &record["sound_loop"];
    let delays = [&found["least_samples"], &found["round_trip_samples"], &found["most_samples"]];
    assert_eq!(delays, [PERIOD; 3], "{found}");

    let playing = server.start_command(&scratch, "amp play --device jack --input 2 --model nano.nam --quiet");
    let wires = ["system:capture_2\n   punctual:in", "left\n   system:playback_1", "right\n   system:playback_2"];
    wait_until("the ports are connected", || wires.iter().all(|wire| server.connections().contains(wire)));
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let ended = playing.wait_with_output().unwrap();
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{stderr}");
    let errors: Vec<_> = stderr.lines().filter(|line| !line.starts_with("note: ")).collect();
    assert!(errors.len() == 1 && errors[0].contains("the JACK server ended"), "{stderr}");
}

#[test]
fn a_missing_server_is_reported_with_the_remedy() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path().join("plain.toml"), "").unwrap();
    let play = "amp play --preset plain.toml --device jack";
    let run = scratch.punctual(play).env("JACK_DEFAULT_SERVER", "punctual-nobody").output().unwrap();
    let stderr = String::from_utf8(run.stderr).unwrap();
    assert_eq!(run.status.code(), Some(1), "{stderr}");
    let known = ["no JACK server answers: start one", "JACK's library cannot be loaded", "cannot load JACK's library"];
    assert!(stderr.lines().count() == 1 && known.iter().any(|error| stderr.contains(error)), "{stderr}");
    for arguments in ["--periods 3", "--policy fifo:5", "--sample-format S16"] {
        scratch.run(&format!("{play} {arguments}")).expect_status(64);
    }
    scratch.run("amp play --preset plain.toml --capture-device jack --playback-device hw:0").expect_status(64);
}

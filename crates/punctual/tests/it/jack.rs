//! JACK: a server of our own with its dummy driver, and a client of our own that hears what is played.

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

use super::harness::{Scratch, signal, wait_until};

const RATE_HZ: u32 = 48_000;
const PERIOD: usize = 256;

/// A server whose name nobody else has. It waits for its clients, so that no sample is lost on a busy machine.
struct Server {
    child: Child,
    name: String,
    _only: MutexGuard<'static, ()>,
}

/// JACK's library knows one server a process: clients of two in one disturb each other.
static ONLY: Mutex<()> = Mutex::new(());

impl Server {
    /// `None`, and said, where there is none.
    fn start(name: &str) -> Option<Self> {
        let only = ONLY.lock().unwrap_or_else(PoisonError::into_inner);
        let name = format!("punctual-{name}-{}", std::process::id());
        let Ok(child) = Self::spawn(&name) else {
            eprintln!("SKIPPED: JACK, as there is no jackd: apt-get install jackd2");
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
        wait_until("the server answers", || Client::open("look", Some(&self.name)).is_ok());
    }

    /// A command whose server this is.
    fn of<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("JACK_DEFAULT_SERVER", &self.name)
    }

    fn run(&self, scratch: &Scratch, arguments: &str) -> (i32, String, String) {
        let run = self.of(&mut scratch.punctual(arguments)).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (run.status.code().unwrap(), text(run.stdout), text(run.stderr))
    }

    /// A command with this server that goes on meanwhile.
    fn start_command(&self, scratch: &Scratch, arguments: &str) -> Child {
        let mut command = scratch.punctual(arguments);
        self.of(&mut command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// What is connected to what.
    fn connections(&self) -> String {
        let listed = self.of(Command::new("jack_lsp").arg("-c")).output().unwrap();
        String::from_utf8(listed.stdout).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // JACK has places for eight servers. One that was killed leaves its own to nobody but one of its name.
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

/// Sends a signal when it is told to, and keeps all that comes in from then on.
struct Guitar {
    signal: Vec<f32>,
    heard: Arc<Heard>,
}

impl Guitar {
    /// One with a melody.
    fn join(server: &Server) -> (Client, Arc<Heard>) {
        let heard = Arc::new(Heard::default());
        let mut guitar = Client::open("guitar", Some(&server.name)).unwrap();
        guitar.activate(Box::new(Self { signal: melody(), heard: heard.clone() }), Arc::new(Whatever)).unwrap();
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

/// What happens to the guitar is no part of a test.
struct Whatever;

impl Events for Whatever {
    fn xrun(&self) {}
    fn rate(&self, _: u32) {}
    fn ended(&self) {}
    fn panicked(&self) {}
}

impl Heard {
    /// Sends it once more, and answers how many samples later `expected` was heard, to the bit.
    fn finds(&self, expected: &[f32]) -> usize {
        let (nearest, worst) = self.nearest(expected);
        assert_eq!(worst, 0.0, "at {nearest}, of {}", expected.len());
        nearest
    }

    /// Sends it once more, and answers how many samples later what was heard is nearest to `expected`, and how far it is off.
    fn nearest(&self, expected: &[f32]) -> (usize, f32) {
        self.go.store(false, Relaxed);
        let before = self.periods.load(Relaxed);
        wait_until("the guitar is silent", || self.periods.load(Relaxed) > before + 40);
        self.samples.lock().unwrap().clear();
        self.go.store(true, Relaxed);
        let enough = expected.len() + 8 * PERIOD;
        wait_until("all is heard", || self.samples.lock().unwrap().len() >= enough);
        let heard = self.samples.lock().unwrap();
        let worst = |at: usize| {
            heard[at..].iter().zip(expected).map(|(heard, expected)| (heard - expected).abs()).fold(0.0, f32::max)
        };
        let nearest = (0..8 * PERIOD).min_by(|&a, &b| worst(a).total_cmp(&worst(b))).unwrap();
        (nearest, worst(nearest))
    }
}

/// A melody of a string, more or less.
fn melody() -> Vec<f32> {
    (0..12_000).map(|n| 0.4 * (n as f32 * 0.02).sin() * (-((n % 3000) as f32) / 900.0).exp()).collect()
}

/// A scratch folder with a model, and what it makes of the melody.
fn rendered() -> (Scratch, Vec<f32>) {
    let scratch = Scratch::new();
    let vectors = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../amp/tests/vectors");
    std::fs::copy(vectors.join("wn_a1_nano.nam"), scratch.path().join("nano.nam")).unwrap();
    let wet = render(&scratch, "nano.nam");
    (scratch, wet)
}

/// What a model of the folder makes of the melody.
fn render(scratch: &Scratch, model: &str) -> Vec<f32> {
    let spec = WavSpec { channels: 1, sample_rate: RATE_HZ, bits_per_sample: 32, sample_format: SampleFormat::Float };
    let mut dry = WavWriter::create(scratch.path().join("dry.wav"), spec).unwrap();
    melody().iter().for_each(|&sample| dry.write_sample(sample).unwrap());
    dry.finalize().unwrap();
    scratch.run(&format!("amp render dry.wav wet.wav --neutral --model {model}")).expect_status(0);
    WavReader::open(scratch.path().join("wet.wav")).unwrap().into_samples().map(Result::unwrap).collect()
}

#[test]
fn what_is_played_through_is_what_is_rendered_also_with_other_periods() {
    let Some(server) = Server::start("exact") else { return };
    let (scratch, wet) = rendered();
    let (_guitar, heard) = Guitar::join(&server);
    let playing = server.start_command(&scratch, "amp play --device jack:guitar --neutral --model nano.nam --quiet");
    wait_until("it is connected", || server.connections().contains("punctual:left\n   guitar:in"));
    // What goes around comes a period later, or at once.
    assert!(heard.finds(&wet).is_multiple_of(PERIOD));
    assert!(server.of(Command::new("jack_bufsize").arg("64")).output().unwrap().status.success());
    assert!(heard.finds(&wet).is_multiple_of(64));
    signal(&playing, "INT");
    let ended = playing.wait_with_output().unwrap();
    let told = String::from_utf8(ended.stdout).unwrap();
    assert_eq!(ended.status.code(), Some(0), "{told}");
    assert!(told.contains("JACK, periods of 64 frames at 48000 Hz") && told.contains("xruns    "), "{told}");
}

#[test]
fn the_card_is_connected_its_latency_told_and_its_end_survived() {
    let Some(mut server) = Server::start("card") else { return };
    let (scratch, _) = rendered();
    let (status, listed, _) = server.run(&scratch, "amp devices");
    assert_eq!(status, 0, "{listed}");
    assert!(listed.contains("playback jack: JACK, system:playback_1, system:playback_2"), "{listed}");
    assert!(listed.contains("FLOAT; 48000 Hz; periods of 256 frames"), "{listed}");

    for (arguments, told) in [
        ("--rate 44100", "runs with 48000, not 44100: leave out --rate"),
        ("--frames 64", "runs with 256, not 64: leave out --frames"),
        ("--input 3", "has 2 ports of a card to capture from"),
        ("--device jack:nobody", "no port of `nobody` to capture from, there are system:capture_1"),
    ] {
        let device = if arguments.contains("--device") { "" } else { "--device jack" };
        let (status, _, said) = server.run(&scratch, &format!("amp play --model nano.nam {device} {arguments}"));
        assert_eq!(status, 1, "{said}");
        assert!(said.contains(told) && said.lines().count() == 1, "{said}");
    }

    // A cable within JACK: what goes out comes in with the next period.
    let (_, found, said) =
        server.run(&scratch, "latency loop --device jack:punctual --rounds 3 --json --quiet --no-record");
    let record: serde_json::Value = serde_json::from_str(&found).unwrap_or_else(|_| panic!("{said}"));
    let found = &record["sound_loop"];
    let delays = [&found["least_samples"], &found["round_trip_samples"], &found["most_samples"]];
    assert_eq!(delays, [PERIOD; 3], "{found}");

    let playing = server.start_command(&scratch, "amp play --device jack --input 2 --model nano.nam --quiet");
    let wires = ["system:capture_2\n   punctual:in", "left\n   system:playback_1", "right\n   system:playback_2"];
    wait_until("it is connected", || wires.iter().all(|wire| server.connections().contains(wire)));
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let ended = playing.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    let errors: Vec<_> = said.lines().filter(|line| !line.starts_with("note: ")).collect();
    assert!(errors.len() == 1 && errors[0].contains("JACK's server has ended"), "{said}");
}

#[test]
fn without_a_server_that_is_told_with_what_to_do() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path().join("plain.toml"), "").unwrap();
    let play = "amp play --preset plain.toml --device jack";
    let run = scratch.punctual(play).env("JACK_DEFAULT_SERVER", "punctual-nobody").output().unwrap();
    let said = String::from_utf8(run.stderr).unwrap();
    assert_eq!(run.status.code(), Some(1), "{said}");
    let is_told =
        ["no JACK server answers: start one", "JACK's library cannot be loaded", "cannot load JACK's library"];
    assert!(said.lines().count() == 1 && is_told.iter().any(|told| said.contains(told)), "{said}");
    for arguments in ["--periods 3", "--priority 5", "--format S16"] {
        scratch.run(&format!("{play} {arguments}")).expect_status(64);
    }
    scratch.run("amp play --preset plain.toml --capture jack --playback hw:0").expect_status(64);
}

//! The bundle in hosts that others wrote: the tools of Lilv, and jalv with a JACK server of its own.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

const BUNDLE: &str = env!("CARGO_BIN_EXE_punctual-bundle");
const SAMPLES: usize = 9_600;

/// True if the program exists; else the test is skipped.
fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|folder| folder.join(program).exists());
    if !is_there {
        eprintln!("SKIPPED: the plugin in {program}: sudo apt-get install lilv-utils jalv sordi lv2-dev jackd2");
    }
    is_there
}

/// A folder with the bundle.
fn bundle() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("punctual.lv2");
    assert!(Command::new(BUNDLE).arg(&bundle).status().unwrap().success());
    let target = Path::new(BUNDLE).parent().unwrap();
    let library = [target.to_owned(), target.join("deps")]
        .into_iter()
        .map(|folder| folder.join("libpunctual_plugin.so"))
        .filter(|library| library.exists())
        .max_by_key(|library| fs::metadata(library).unwrap().modified().unwrap());
    fs::copy(library.expect("the library"), bundle.join("punctual_plugin.so")).unwrap();
    folder
}

/// A command that knows the bundle and the specifications of LV2.
fn host(program: &str, folder: &TempDir) -> Command {
    let mut command = Command::new(program);
    command.env("LV2_PATH", format!("{}:/usr/lib/lv2", folder.path().display())).stdin(Stdio::null());
    command
}

/// A WAV file of 16 bit.
fn wav(samples: &[i16]) -> Vec<u8> {
    let data: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
    let length = u32::try_from(data.len()).unwrap();
    let number = |number: u32| number.to_le_bytes().to_vec();
    let format = [number(16), vec![1, 0, 1, 0], number(48_000), number(96_000), vec![2, 0, 16, 0]].concat();
    [b"RIFF".to_vec(), number(length + 36), b"WAVEfmt ".to_vec(), format, b"data".to_vec(), number(length), data]
        .concat()
}

/// The samples of a WAV file of 16 bit with one channel.
fn samples(path: &Path) -> Vec<i16> {
    let bytes = fs::read(path).unwrap();
    let at = bytes.windows(4).position(|word| word == b"data").unwrap() + 8;
    bytes[at..].chunks_exact(2).map(|sample| i16::from_le_bytes([sample[0], sample[1]])).collect()
}

#[test]
fn lilv_finds_and_plays_it() {
    if !has("lv2apply") || !has("lv2info") {
        return;
    }
    let folder = bundle();
    for uri in ["urn:punctual:amp", "urn:punctual:amp-stereo"] {
        let info = host("lv2info", &folder).arg(uri).output().unwrap();
        let text = String::from_utf8_lossy(&info.stdout).into_owned();
        assert!(text.contains("Has latency:       yes") && text.contains("tone_bass_db"), "{text}");
        assert!(text.contains("http://lv2plug.in/ns/ext/state#interface"), "{text}");
    }
    // Without a model the amplifier passes the guitar on, if nothing removes offsets.
    #[expect(clippy::cast_possible_truncation, reason = "below 9000")]
    let guitar: Vec<i16> = (0..SAMPLES).map(|at| (9_000.0 * (at as f64 * 0.05).sin()) as i16).collect();
    let (input, output) = (folder.path().join("in.wav"), folder.path().join("out.wav"));
    fs::write(&input, wav(&guitar)).unwrap();
    let apply = |gain_db: &str| {
        let mut command = host("lv2apply", &folder);
        command.arg("-i").arg(&input).arg("-o").arg(&output);
        command.args(["-c", "output_dc_block", "0", "-c", "output_gain_db", gain_db, "urn:punctual:amp"]);
        let applied = command.output().unwrap();
        assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
        // The parameters are reached in 20 ms.
        samples(&output)[SAMPLES / 2..].to_vec()
    };
    let furthest = |heard: &[i16], gain: f64| {
        let due = guitar[SAMPLES / 2..].iter().map(|sample| f64::from(*sample) * gain);
        heard.iter().zip(due).map(|(heard, due)| (f64::from(*heard) - due).abs()).fold(0.0, f64::max)
    };
    let (same, half) = (apply("0"), apply("-6.0206"));
    assert_eq!((same.len(), half.len()), (SAMPLES / 2, SAMPLES / 2));
    assert!(
        furthest(&same, 1.0) <= 2.0 && furthest(&half, 0.5) <= 2.0,
        "{} {}",
        furthest(&same, 1.0),
        furthest(&half, 0.5)
    );
    assert!(furthest(&half, 1.0) > 1_000.0, "the comparison can fail");
}

#[test]
fn hosts_find_presets() {
    if !has("lv2info") {
        return;
    }
    let folder = bundle();
    let preset = folder.path().join("my lead.toml");
    fs::write(&preset, "[tone]\nbass_db = 3.5\n").unwrap();
    let bundle = folder.path().join("punctual.lv2");
    let made = Command::new(BUNDLE).arg(&bundle).arg(&preset).status().unwrap();
    assert!(made.success());
    for uri in ["urn:punctual:amp", "urn:punctual:amp-stereo"] {
        let info = host("lv2info", &folder).arg(uri).output().unwrap();
        let text = String::from_utf8_lossy(&info.stdout).into_owned();
        let presets = text.split("Presets:").nth(1).unwrap_or_default();
        assert!(presets.trim_start().starts_with("my lead"), "{text}");
    }
    // A preset that is wrong, and one that is missing.
    fs::write(&preset, "[tone]\nbas_db = 3.5\n").unwrap();
    for wrong in [preset, folder.path().join("none.toml")] {
        let refused = Command::new(BUNDLE).arg(&bundle).arg(&wrong).output().unwrap();
        let text = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(1) && text.contains("toml"), "{text}");
    }
}

#[test]
fn the_description_is_valid() {
    if !has("sord_validate") {
        return;
    }
    let folder = bundle();
    let mut files: Vec<PathBuf> = turtles(Path::new("/usr/lib/lv2"));
    if files.is_empty() {
        return eprintln!("SKIPPED: the specifications of LV2: sudo apt-get install lv2-dev");
    }
    files.extend(turtles(folder.path()));
    // The packages of LV2 do not contain the names of MOD devices.
    let of_mod = folder.path().join("mod.ttl");
    fs::write(&of_mod, names_of_mod()).unwrap();
    files.push(of_mod);
    let validated = Command::new("sord_validate").args(&files).output().unwrap();
    let text = String::from_utf8_lossy(&[validated.stdout, validated.stderr].concat()).into_owned();
    assert!(validated.status.success() && text.contains("Found 0 errors"), "{text}");
}

/// Definitions of the properties of MOD devices, <http://moddevices.com/ns/mod> and <http://moddevices.com/ns/modgui>.
fn names_of_mod() -> String {
    let of_gui = [
        "brand",
        "gui",
        "iconTemplate",
        "label",
        "port",
        "resourcesDirectory",
        "screenshot",
        "stylesheet",
        "thumbnail",
    ];
    let of_gui = of_gui.map(|name| format!("<http://moddevices.com/ns/modgui#{name}>"));
    let names = of_gui.into_iter().chain(["<http://moddevices.com/ns/mod#fileTypes>".to_owned()]);
    let define = |name| {
        format!(
            "{name} a <http://www.w3.org/1999/02/22-rdf-syntax-ns#Property> ; <http://www.w3.org/2000/01/rdf-schema#label> \"x\" .\n"
        )
    };
    names.map(define).collect()
}

/// The Turtle files below a folder.
fn turtles(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => turtles(&path),
            false if path.extension().is_some_and(|suffix| suffix == "ttl") => vec![path],
            false => Vec::new(),
        })
        .collect()
}

/// A child that is asked to end, then waited for. A JACK server that is killed stays registered: after eight of them no
/// other starts ("Too many servers already active").
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

#[test]
fn jalv_restores_a_state_and_reports_a_file_that_is_missing() {
    if !has("jalv") || !has("jackd") {
        return;
    }
    let folder = bundle();
    // The same name each time: JACK takes the place of a server of this name that has ended.
    let server = "punctual-test";
    let jackd = Command::new("jackd")
        .args(["-n", server, "-r", "-d", "dummy", "-r", "48000", "-p", "256"])
        .env("JACK_NO_AUDIO_RESERVATION", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut jackd = Started(jackd.unwrap());
    let state = folder.path().join("lead");
    fs::create_dir(&state).unwrap();
    let wire = r#"{"version": "0.5.4", "architecture": "Linear", "sample_rate": 48000,
        "config": {"receptive_field": 1, "bias": false}, "weights": [1]}"#;
    fs::write(state.join("wire.nam"), wire).unwrap();
    let turtle = |model: &str| {
        format!(
            "@prefix lv2: <http://lv2plug.in/ns/lv2core#> .\n@prefix pset: <http://lv2plug.in/ns/ext/presets#> .\n\
             @prefix state: <http://lv2plug.in/ns/ext/state#> .\n<> a pset:Preset ; lv2:appliesTo <urn:punctual:amp> ;\n\
             lv2:port [ lv2:symbol \"tone_bass_db\" ; pset:value 3.5 ] ;\n\
             state:state [ <urn:punctual:amp:model> <{model}> ] .\n"
        )
    };
    for (model, error) in [("wire.nam", None), ("none.nam", Some("none.nam: No such file"))] {
        fs::write(state.join("state.ttl"), turtle(model)).unwrap();
        let began = Instant::now();
        // The server takes a moment to start.
        let text = loop {
            let mut command = host("jalv", &folder);
            command.args(["-p", "-l"]).arg(&state).arg("urn:punctual:amp").env("JACK_DEFAULT_SERVER", server);
            // Otherwise jalv starts a server of the same name, and the one that comes second ends.
            let played = command.env("JACK_NO_START_SERVER", "1").output().unwrap();
            assert!(jackd.0.try_wait().unwrap().is_none(), "jackd has ended");
            let text = String::from_utf8_lossy(&[played.stdout, played.stderr].concat()).into_owned();
            if text.contains("tone_bass_db = 3.5") || began.elapsed() > Duration::from_secs(20) {
                break text;
            }
            thread::sleep(Duration::from_millis(300));
        };
        assert!(text.contains("tone_bass_db = 3.5"), "{text}");
        match error {
            None => assert!(!text.contains("cannot read"), "{text}"),
            Some(error) => assert!(text.contains("cannot read") && text.contains(error), "{text}"),
        }
    }
}

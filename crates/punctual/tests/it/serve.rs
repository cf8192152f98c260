//! `amp serve`: the page in a real browser, and its HTTP interface.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use hound::{SampleFormat, WavSpec, WavWriter};
use serde_json::{Value, json};

use super::{
    browser::{Browser, http},
    harness::{PUNCTUAL, Scratch, signal, wait_until},
};

const JSON: (&str, &str) = ("Content-Type", "application/json");
/// File for the standard error of the server.
const STDERR: &str = "stderr";

/// A running server of a library, without a sound card.
struct Server {
    folder: Scratch,
    child: Child,
    /// The link that it prints.
    url: String,
    port: u16,
}

impl Server {
    /// Serves a valid model, an invalid one, and a cabinet in a subfolder.
    fn start() -> Self {
        Self::start_in(Scratch::new())
    }

    /// Adds the same files to a folder, and serves it.
    fn start_in(folder: Scratch) -> Self {
        Self::start_with(folder, "--bind 127.0.0.1 --port 0")
    }

    /// Adds the same files to a folder, and serves it with these options.
    fn start_with(folder: Scratch, options: &str) -> Self {
        let vectors = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../amp/tests/vectors");
        fs::copy(vectors.join("wn_a1_nano.nam"), folder.path().join("nano.nam")).unwrap();
        fs::write(folder.path().join("broken.nam"), "{").unwrap();
        fs::create_dir_all(folder.path().join("cabs")).unwrap();
        let spec = WavSpec { channels: 1, sample_rate: 48_000, bits_per_sample: 16, sample_format: SampleFormat::Int };
        let mut cab = WavWriter::create(folder.path().join("cabs/4x12.wav"), spec).unwrap();
        (0..400_i16).for_each(|n| cab.write_sample(20_000 / (1 + n)).unwrap());
        cab.finalize().unwrap();
        let serve = format!("amp serve . --device clock --frames 512 --policy other {options}");
        let stderr = File::create(folder.path().join(STDERR)).unwrap();
        // Few file descriptors, so that a leak fails the tests.
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -S -n 40 && exec \"$0\" \"$@\"", PUNCTUAL]).args(serve.split(' '));
        let mut child = command.current_dir(folder.path()).stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let url = url.trim().to_owned();
        let (_, port) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')?.0.rsplit_once(':')).unwrap();
        Self { port: port.parse().unwrap(), url, folder, child }
    }

    fn get(&self, path: &str) -> Value {
        let (status, body) = http(self.port, "GET", path, &[], "");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Presses a button of the page; returns the message.
    fn act(&self, body: &str) -> String {
        let (status, answer) = self.post("/act", body);
        assert_eq!(status, 200, "{answer}");
        serde_json::from_str::<Value>(&answer).unwrap()["message"].as_str().unwrap().to_owned()
    }

    fn post(&self, path: &str, body: &str) -> (u16, String) {
        http(self.port, "POST", path, &[JSON], body)
    }

    /// The value of a parameter.
    fn value(&self, name: &str) -> f64 {
        let state = self.get("/state");
        let known = state["parameters"].as_array().unwrap().iter().find(|known| known["name"] == name);
        known.unwrap()["value"].as_f64().unwrap()
    }

    /// The standard error so far.
    fn stderr(&self) -> String {
        fs::read_to_string(self.folder.path().join(STDERR)).unwrap()
    }

    /// A connection that has sent this. Reading from it fails after 20 s.
    fn send(&self, request: &str) -> TcpStream {
        let mut connection = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        connection.write_all(request.as_bytes()).unwrap();
        connection
    }

    /// The whole response with its headers.
    fn respond(&self, request: &str) -> String {
        let mut response = String::new();
        self.send(request).read_to_string(&mut response).expect("a response");
        response
    }

    /// The Host header.
    fn host(&self) -> String {
        format!("Host: 127.0.0.1:{}\r\n", self.port)
    }

    /// Ends the server like Ctrl-C.
    fn end(mut self) {
        signal(&self.child, "INT");
        let mut status = None;
        wait_until("the server ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        assert_eq!(status.unwrap().code(), Some(0));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_browser_chooses_models_and_turns_knobs() {
    let server = Server::start();
    let browser = Browser::open(&format!("http://127.0.0.1:{}/", server.port));
    let text = |id: &str| browser.script(&format!("return document.getElementById('{id}').textContent"));
    wait_until("the page is ready", || browser.script("return document.body.dataset.ready") == "true");
    let before = server.get("/live")["periods"].as_u64().unwrap();

    browser.choose("#model1", "nano.nam");
    wait_until("the model plays", || text("message") == "nano.nam is playing");
    // The page may be refreshed between a choice and its response, which must not change the chosen file.
    browser.script(
        "const ask = fetch;
         window.fetch = async (path, more) => { if (path === 'choose') await refresh(); return ask(path, more); };",
    );
    browser.choose("#cabinet", "cabs/4x12.wav");
    wait_until("the cabinet plays", || text("message") == "cabs/4x12.wav is playing");
    let playing = server.get("/state")["playing"].clone();
    assert_eq!((&playing["models"][0], &playing["cabinet"]), (&"nano.nam".into(), &"cabs/4x12.wav".into()));

    // An invalid file is listed apart. If it is chosen, the error is shown, and the sound is not changed.
    let others = "return document.getElementById('others').textContent";
    wait_until("the invalid file is listed apart", || {
        browser.script(others).as_str().unwrap().contains("broken.nam: ")
    });
    browser.script("fill(document.getElementById('model2'), ['broken.nam'])");
    browser.choose("#model2", "broken.nam");
    wait_until("the error is shown", || text("message").as_str().unwrap().contains("broken.nam"));
    wait_until("the list shows the model that plays", || {
        browser.script("return document.getElementById('model2').value") == ""
    });
    assert_eq!(server.get("/state")["playing"]["models"][1], Value::Null);

    // Turns a knob with the pointer, where 180 pixels are the whole range of 30 dB, and with keys.
    assert_eq!(browser.unnamed_controls(), json!([]));
    let is_at = |value: f64| (server.value("tone.bass_db") - value).abs() < 1e-3;
    browser.drag_up("label.knob:has([id='tone.bass_db']) svg", 60);
    wait_until("the pointer turns the knob", || is_at(10.0));
    // A response that was delayed while the knob was turned must not turn it back.
    browser.script(
        "const ask = fetch, held = new Promise(go => window.release = go);
         window.fetch = async (path, more) => { const answer = await ask(path, more); if (path === 'state') await held; return answer; };
         window.late = refresh();
         window.fetch = ask;",
    );
    browser.keys("[id='tone.bass_db']", "\u{e013}\u{e013}");
    wait_until("two keys turn the knob by two steps", || is_at(10.2));
    let shown = "release(); return late.then(() => document.getElementById('tone.bass_db').value)";
    assert_eq!(browser.script(shown), "10.2");
    browser.click("[id='gate.on']");
    wait_until("the gate is on", || server.value("gate.on") == 1.0);
    browser.choose("#amp.routing", "parallel");
    wait_until("the routing is parallel", || server.value("amp.routing") == 1.0);

    browser.keys("#save input", "my tone");
    browser.click("#save button");
    wait_until("the preset is saved", || text("message") == "saved as my tone.toml");
    let preset = fs::read_to_string(server.folder.path().join("my tone.toml")).unwrap();
    assert!(
        preset.contains("nano.nam") && preset.contains("4x12.wav") && preset.contains("[gate]\non = true"),
        "{preset}"
    );

    // A change by another client is shown, even if this page sets something else before its next poll.
    browser.script(
        "const ask = fetch, held = new Promise(go => window.resume = () => { window.fetch = ask; go(); });
         window.fetch = async (path, more) => { if (path === 'live') { window.isPaused = true; await held; } return ask(path, more); };",
    );
    wait_until("the page stops polling", || browser.script("return String(window.isPaused)") == "true");
    assert_eq!(server.post("/set", r#"{"name":"tone.treble_db","value":-7.5}"#).0, 200);
    browser.keys("[id='tone.bass_db']", "\u{e013}");
    wait_until("the knob is turned", || is_at(10.3));
    browser.script("resume()");
    let shown = "return document.getElementById('tone.treble_db').closest('.knob').querySelector('.value').textContent";
    wait_until("the change is shown", || browser.script(shown) == "-7.5 dB");

    assert!(server.get("/live")["periods"].as_u64().unwrap() > before, "must play on");
    let errors: Vec<_> =
        browser.complaints().into_iter().filter(|error| !error.contains("400 (Bad Request)")).collect();
    assert!(errors.is_empty(), "{errors:?}");
    drop(browser);
    server.end();
}

/// A browser with the page of the server, ready to use.
fn open(server: &Server) -> Browser {
    let browser = Browser::open(&server.url);
    wait_until("the page is ready", || browser.script("return document.body.dataset.ready") == "true");
    browser
}

fn text(browser: &Browser, id: &str) -> String {
    let text = browser.script(&format!("return document.getElementById('{id}').textContent"));
    text.as_str().unwrap().to_owned()
}

const PAGE_DOWN: &str = "\u{e00f}";
const CONTROL: &str = "\u{e009}";

#[test]
fn a_player_changes_presets_compares_bypasses_and_undoes() {
    let folder = Scratch::new();
    let preset = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    preset("1 clean.toml", "[tone]\nbass_db = 1\n");
    preset("2 broken.toml", "[[model]]\nfile = 'none.nam'\n");
    preset("3 lead.toml", "[tone]\nbass_db = 3\n[[model]]\nfile = 'nano.nam'\n");
    let server = Server::start_in(folder);
    let browser = open(&server);
    let playing = || server.get("/state")["playing"]["preset"].clone();
    let bass = || server.value("tone.bass_db");
    let press = |keys: &str| browser.keys("body", keys);
    assert_eq!(playing(), "1 clean.toml");

    // A page-turning pedal; a preset that cannot be played is skipped.
    press(PAGE_DOWN);
    wait_until("the next preset that can be played", || playing() == "3 lead.toml");
    wait_until("the message", || text(&browser, "message").contains("skipped 2 broken.toml"));
    // Also if a knob has the focus.
    browser.keys("[id='tone.treble_db']", PAGE_DOWN);
    wait_until("the list begins again", || playing() == "1 clean.toml");
    browser.click("#previous");
    wait_until("the previous preset", || playing() == "3 lead.toml");
    assert_eq!(server.value("tone.treble_db"), 0.0);

    // B begins as a copy of the start; it keeps its own settings and model.
    press("a");
    wait_until("B plays", || playing() == "1 clean.toml" && server.get("/state")["side"] == "b");
    browser.keys("[id='tone.bass_db']", "\u{e013}");
    wait_until("the knob of B is turned", || (bass() - 1.1).abs() < 1e-3);
    browser.click("#side-a");
    wait_until("A plays with its model", || {
        bass() == 3.0 && server.get("/state")["playing"]["models"][0] == "nano.nam"
    });
    let pressed = |id: &str| browser.script(&format!("return document.getElementById('{id}').ariaPressed"));
    wait_until("the page shows A", || pressed("side-a") == "true" && pressed("side-b") == "false");
    press("a");
    wait_until("B plays again", || (bass() - 1.1).abs() < 1e-3);

    // Undo and redo, by key and button.
    press(&format!("{CONTROL}z"));
    wait_until("the knob of B is turned back", || bass() == 1.0);
    wait_until("redo is possible", || browser.script("return document.getElementById('redo').disabled") == false);
    browser.click("#redo");
    wait_until("the knob is turned again", || (bass() - 1.1).abs() < 1e-3);
    assert!(server.post("/act", r#"{"do":"redo"}"#).1.contains("there is nothing to redo"));
    browser.click("#copy");
    wait_until("A is a copy", || text(&browser, "message") == "B was copied to A");
    assert_eq!(server.get("/state")["sides"]["a"], "1 clean.toml");

    // Bypass does not change the settings.
    press("b");
    wait_until("bypass is on", || server.get("/state")["bypass"] == true);
    wait_until("the page shows it", || pressed("bypass") == "true");
    assert!((bass() - 1.1).abs() < 1e-3);
    browser.click("#bypass");
    wait_until("bypass is off", || server.get("/state")["bypass"] == false);
    // Letters in the name of a preset are no commands.
    browser.keys("#save input", "ab");
    browser.click("#save button");
    wait_until("the preset is saved", || playing() == "ab.toml");
    assert_eq!(server.get("/state")["bypass"], false);
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
    drop(browser);
    server.end();
}

#[test]
fn shows_metadata_and_resampling_of_the_models() {
    let folder = Scratch::new();
    let model = r#"{"version": "0.5.4", "architecture": "Linear", "sample_rate": 44100,
        "metadata": {"name": "Deluxe\u001b[2J", "modeled_by": "Ana", "gear_make": "Fender", "gear_model": "65", "loudness": -22.5},
        "config": {"receptive_field": 1, "bias": false}, "weights": [1.0]}"#;
    fs::write(folder.path().join("deluxe.nam"), model).unwrap();
    let server = Server::start_in(folder);
    let browser = open(&server);
    browser.choose("#model1", "deluxe.nam");
    let about = || text(&browser, "about-model1");
    wait_until("the description is shown", || about().contains("by Ana"));
    let shown = about();
    for part in ["Deluxe\\u{1b}[2J", "Fender 65", "\u{2212}22.5 dB", "trained at 44100 Hz, resampled to 48000 Hz: 1."] {
        assert!(shown.contains(part), "{shown}");
    }
    assert!(!shown.contains(char::is_control), "{shown}");
    // The count of xruns begins again.
    assert_eq!(server.act(r#"{"do":"reset"}"#), "xruns are counted from now on");
    drop(browser);
    server.end();
}

#[test]
fn dropped_files_are_added_and_played() {
    let server = Server::start();
    let browser = open(&server);
    let model = fs::read_to_string(server.folder.path().join("nano.nam")).unwrap();
    let outside = Scratch::new();
    let path = outside.path().join("picked.nam");
    fs::write(&path, &model).unwrap();
    // The button of the page.
    browser.keys("#files", path.to_str().unwrap());
    wait_until("the file is added", || text(&browser, "message") == "picked.nam was added and is playing");
    assert_eq!(server.get("/state")["playing"]["models"][0], "picked.nam");
    assert_eq!(fs::read_to_string(server.folder.path().join("picked.nam")).unwrap(), model);

    // Drag and drop.
    let drop_file = |name: &str, content: &str| {
        let path = outside.path().join(name);
        fs::write(&path, content).unwrap();
        browser.drop_file(".choices", &path);
    };
    let message = || text(&browser, "message");
    drop_file("<b>x.nam", "{");
    wait_until("the invalid model is refused", || message().contains("_b_x.nam was not added: "));
    drop_file("lead.toml", "[[model]]\nfile = '/etc/passwd'\n");
    wait_until("the preset is refused", || message().contains("presets cannot be added"));
    drop_file("photo.jpeg", "x");
    wait_until("the photo is refused", || message().contains("only models"));
    assert!(!server.folder.path().join("lead.toml").exists());

    // An existing file is replaced only with permission.
    let longer = format!("{model}\n");
    let answer = |button: &str| {
        drop_file("picked.nam", &longer);
        wait_until("the question is shown", || {
            browser.script("return document.getElementById('replace').open") == true
        });
        browser.click(&format!("#replace button[value='{button}']"));
    };
    let size = || fs::read(server.folder.path().join("picked.nam")).unwrap().len();
    answer("");
    wait_until("the question is closed", || browser.script("return document.getElementById('replace').open") == false);
    assert_eq!(size(), model.len());
    answer("yes");
    wait_until("the file is replaced", || size() == longer.len());
    wait_until("it plays", || message() == "picked.nam was added and is playing");

    let upload = |query: &str, headers: &[(&str, &str)]| http(server.port, "POST", query, headers, &model).0;
    let bytes = ("Content-Type", "application/octet-stream");
    assert_eq!(upload("/upload?name=a.nam", &[bytes, ("Origin", "http://elsewhere.example")]), 403);
    assert_eq!(upload("/upload?name=a.nam", &[("Content-Type", "text/plain")]), 415);
    assert_eq!((upload("/upload", &[bytes]), upload("/upload?name=picked.nam", &[bytes])), (400, 409));
    assert_eq!(upload("/upload?name=..%2f..%2fa.nam", &[bytes]), 200);
    assert!(server.folder.path().join("a.nam").exists());
    drop(browser);
    server.end();
}

#[test]
fn the_page_shows_that_the_server_is_gone_and_comes_back() {
    let mut server = Server::start();
    let browser = open(&server);
    let gone =
        || browser.script("const gone = document.getElementById('gone'); return gone.hidden ? '' : gone.textContent");
    let is_inert = || browser.script("return document.querySelector('main').inert");
    assert_eq!((gone(), is_inert()), ("".into(), false.into()));
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    wait_until("the page shows that the server is gone", || {
        gone().as_str().unwrap().contains("No connection to punctual")
    });
    assert_eq!(is_inert(), true);
    // Nothing can be used meanwhile.
    browser.keys("body", PAGE_DOWN);
    let port = server.port;
    let folder = std::mem::replace(&mut server.folder, Scratch::new());
    let again = Server::start_with(folder, &format!("--port {port}"));
    wait_until("the page connects again", || gone() == "" && is_inert() == false);
    wait_until("the page is current", || browser.script("return version") == again.get("/state")["version"]);
    drop(browser);
    again.end();
}

#[test]
fn other_machines_need_the_token() {
    let server = Server::start_with(Scratch::new(), "--bind 0.0.0.0 --port 0");
    let (_, token) = server.url.split_once("/?token=").expect("a token in the link");
    assert!(token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{token}");
    wait_until("the warning is printed", || server.stderr().contains("not encrypted"));
    assert!(!server.stderr().contains(token));
    let get = |path: &str, headers: &[(&str, &str)]| http(server.port, "GET", path, headers, "").0;
    for path in
        ["/", "/page.js", "/page.css", "/state", "/live", "/?token=", "/?token=00000000000000000000000000000000"]
    {
        assert_eq!(get(path, &[]), 401, "{path}");
    }
    let cookie = format!("punctual-{}={token}", server.port);
    assert_eq!(get("/state", &[("Cookie", &cookie)]), 200);
    assert_eq!(get("/state", &[("Cookie", &cookie), ("Host", "rebound.example")]), 403);
    assert_eq!(get("/state", &[("Cookie", &cookie), ("Origin", "http://elsewhere.example")]), 403);
    assert_eq!(get("/state", &[("Authorization", &format!("Bearer {token}"))]), 200);
    for (path, body) in [("/set", r#"{"name":"gate.on","value":1}"#), ("/act", r#"{"do":"next"}"#), ("/choose", "{}")] {
        assert_eq!(server.post(path, body).0, 401, "{path}");
    }
    assert_eq!(
        http(server.port, "POST", "/upload?name=a.nam", &[("Content-Type", "application/octet-stream")], "{}").0,
        401
    );
    assert!(!server.folder.path().join("a.nam").exists());

    // The link opens the page and disappears from the address bar. Scripts cannot read the cookie.
    let browser = Browser::open(&format!("http://127.0.0.1:{}/?token={token}", server.port));
    wait_until("the page is ready", || browser.script("return document.body.dataset.ready") == "true");
    assert_eq!(browser.script("return location.pathname + location.search + document.cookie"), "/");
    browser.click("[id='gate.on']");
    let value = || {
        let (_, state) = http(server.port, "GET", "/state", &[("Cookie", &cookie)], "");
        state.contains(r#""name":"gate.on","value":1.0"#)
    };
    wait_until("the gate is on", value);
    browser.forget_cookies();
    let gone = || text(&browser, "gone");
    wait_until("the page shows that it needs the link", || gone().contains("open the link that punctual prints now"));
    // Without the link, a person sees what to do.
    let (_, page) = http(server.port, "GET", "/", &[], "");
    assert!(page.contains("This page needs its link"), "{page}");
    drop(browser);
    server.end();
}

#[test]
fn pedals_choose_presets_and_are_learned() {
    let folder = Scratch::new();
    let preset = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    preset("1.toml", "[midi]\n11 = 'tone.bass_db'\n");
    preset("2.toml", "");
    let pipe = folder.path().join("pedal");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let server = Server::start_with(folder, "--port 0 --midi pedal --midi-channel 1");
    let send = |bytes: &[u8]| fs::OpenOptions::new().write(true).open(&pipe).unwrap().write_all(bytes).unwrap();
    let playing = || server.get("/state")["playing"]["preset"].clone();
    send(&[0xb0, 11, 127]);
    wait_until("the pedal of the preset", || server.value("tone.bass_db") == 15.0);
    send(&[0xc3, 1, 0xc0, 1]);
    wait_until("the program", || playing() == "2.toml");

    let browser = open(&server);
    browser.choose("#target", "previous preset");
    browser.click("#learn button");
    wait_until("the page asks for the pedal", || text(&browser, "message") == "move the pedal for previous preset");
    // A pedal that trembles is not meant, nor one on another channel.
    send(&[0xb0, 11, 60, 11, 61, 0xb5, 64, 127, 0xb0, 64, 127, 64, 0]);
    let assigned = || text(&browser, "assignments");
    wait_until("the pedal is learned", || assigned().contains("Controller 64: previous preset"));
    assert_eq!(playing(), "2.toml");
    send(&[0xb0, 64, 127, 64, 0]);
    wait_until("the pedal works", || playing() == "1.toml");
    let stored = fs::read_to_string(server.folder.path().join(".midi.toml")).unwrap();
    assert!(stored.contains("64 = \"previous\""), "{stored}");
    assert!(server.act(r#"{"do":"learn","target":"bypass"}"#).contains("move the pedal"));
    send(&[0xb0, 65, 127, 65, 0, 65, 127]);
    wait_until("bypass is on", || server.get("/state")["bypass"] == true);
    // The page keeps what did not change, so that a click that has begun is not lost.
    wait_until("the page shows the pedal of bypass", || assigned().contains("Controller 65: bypass"));
    browser.script("document.querySelector('#assignments button').isKept = true");
    // A program that does not exist is reported on the page.
    send(&[0xc0, 99]);
    wait_until("the message", || text(&browser, "message") == "MIDI chose preset 100, but the folder has only 2");
    assert_eq!(server.post("/set", r#"{"name":"gate.on","value":1}"#).0, 200);
    wait_until("the page shows the gate", || {
        browser.script("return document.getElementById('gate.on').checked") == true
    });
    assert_eq!(browser.script("return document.querySelector('#assignments button').isKept"), true);
    browser.click("#assignments button");
    wait_until("the pedal is removed", || !assigned().contains("Controller 64"));
    drop(browser);
    server.end();
}

#[test]
fn rejects_foreign_requests_and_files_outside_the_library() {
    let server = Server::start();
    let set = r#"{"name":"gate.on","value":1}"#;
    let own_host = format!("127.0.0.1:{}", server.port);
    let refused = [
        (403, http(server.port, "GET", "/state", &[("Host", "elsewhere.example")], "")),
        (403, http(server.port, "GET", "/", &[("Host", "elsewhere.example")], "")),
        (403, http(server.port, "GET", "/page.js", &[("Host", "elsewhere.example")], "")),
        (403, http(server.port, "GET", "/", &[("Host", &own_host), ("Host", "elsewhere.example")], "")),
        (403, http(server.port, "POST", "/set", &[JSON, ("Origin", "http://elsewhere.example")], set)),
        (403, http(server.port, "POST", "/set", &[JSON, ("Origin", "null")], set)),
        (415, http(server.port, "POST", "/set", &[("Content-Type", "text/plain")], set)),
        (404, http(server.port, "GET", "/../etc/passwd", &[], "")),
        (404, http(server.port, "DELETE", "/states", &[], "")),
        (405, http(server.port, "DELETE", "/state", &[], "")),
        (400, server.post("/set", "{")),
        (400, server.post("/set", r#"{"name":"gate.on","value":7}"#)),
        (400, server.post("/set", r#"{"name":"gate.in","value":1}"#)),
        (400, server.post("/choose", r#"{"what":"model1","file":"../nano.nam"}"#)),
        (400, server.post("/choose", r#"{"what":"cabinet","file":"nano.nam"}"#)),
        (400, server.post("/choose", r#"{"what":"model1"}"#)),
        (400, server.post("/save", r#"{"name":"../x"}"#)),
        (413, server.post("/set", &"x".repeat(100_000))),
    ];
    for (expected, (status, body)) in refused {
        assert_eq!(status, expected, "{body}");
        assert!(serde_json::from_str::<Value>(&body).unwrap()["error"].is_string(), "{body}");
    }
    assert_eq!(server.value("gate.on"), 0.0);
    // A preset that the page did not write or choose is not overwritten.
    fs::write(server.folder.path().join("theirs.toml"), "[gate]\non = true\n").unwrap();
    assert!(server.post("/save", r#"{"name":"theirs"}"#).1.contains("already"));
    assert_eq!(server.post("/choose", r#"{"what":"preset","file":"theirs.toml"}"#).0, 200);
    assert_eq!(server.value("gate.on"), 1.0);
    server.end();
}

#[test]
fn stalled_clients_do_not_block_others() {
    let server = Server::start();
    let host = server.host();
    let json = "Content-Type: application/json\r\n";
    // Sends only one byte of the body, so that a response is one to the headers.
    let post = |headers: &str| server.send(&format!("POST /set HTTP/1.1\r\n{host}{headers}\r\n{{"));
    let refused = [
        ("413", format!("{json}Content-Length: 3000\r\n")),
        ("403", format!("{json}Content-Length: 3000\r\nOrigin: http://elsewhere.example\r\n")),
        ("415", "Content-Length: 3000\r\n".to_owned()),
        ("417", format!("{json}Content-Length: 30\r\nExpect: a reward\r\n")),
        ("411", format!("{json}Transfer-Encoding: chunked\r\n")),
    ];
    let mut stalled = Vec::new();
    for (status, headers) in refused.iter().cycle().take(15) {
        let mut connection = post(headers);
        let mut start = [0; 12];
        connection.read_exact(&mut start).expect("a response before the body");
        assert_eq!(std::str::from_utf8(&start).unwrap(), format!("HTTP/1.1 {status}"));
        stalled.push(connection);
    }
    // Short bodies that never arrive, and a client that sends many requests and reads nothing.
    stalled.extend((0..5).map(|_| post(&format!("{json}Content-Length: 30\r\n"))));
    stalled.push(server.send(&format!("GET /state HTTP/1.1\r\n{host}\r\n").repeat(2000)));

    // Far more clients than threads, stalled at every stage of a request.
    let begun = ["", "GET /live HT", "GET /live HTTP/1.1\r\nHost: ", "POST /set HTTP/1.1\r\nContent-Length: 9\r\n"];
    stalled.extend(begun.iter().cycle().take(240).map(|begun| server.send(begun)));

    let response = server.respond(&format!("GET /live HTTP/1.1\r\n{host}\r\n"));
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    assert_eq!(server.value("gate.on"), 0.0);
    // The server ends even though some stalled connections are still open.
    server.end();
    drop(stalled);
}

#[test]
fn stalled_clients_are_dropped_after_the_time_limit() {
    let server = Server::start();
    let (mut silent, mut slow) = (server.send(""), server.send("GET /live HTTP/1.1\r\n"));
    // An upload that arrives at 40 KiB/s may take longer.
    let model = fs::read_to_string(server.folder.path().join("nano.nam")).unwrap() + &" ".repeat(300 << 10);
    let head =
        format!("POST /upload?name=slow.nam HTTP/1.1\r\n{}Content-Type: application/octet-stream\r\n", server.host());
    let mut upload = server.send(&format!("{head}Content-Length: {}\r\n\r\n", model.len()));
    let mut chunks = model.as_bytes().chunks(8 << 10);
    let started = Instant::now();
    // Data that arrives slowly does not extend the time limit.
    while started.elapsed() < Duration::from_secs(6) {
        slow.write_all(b"X: y\r\n").unwrap();
        chunks.next().into_iter().for_each(|chunk| upload.write_all(chunk).unwrap());
        thread::sleep(Duration::from_millis(200));
    }
    for stalled in [&mut silent, &mut slow] {
        let mut response = String::new();
        stalled.read_to_string(&mut response).expect("the end of the connection");
        assert!(response.starts_with("HTTP/1.1 408"), "{response}");
    }
    // Another one has to wait until it is complete.
    let other = ("Content-Type", "application/octet-stream");
    assert_eq!(http(server.port, "POST", "/upload?name=other.nam", &[other], "{}").0, 503);
    chunks.for_each(|chunk| upload.write_all(chunk).unwrap());
    let mut response = String::new();
    upload.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    server.end();
}

#[test]
fn answers_simultaneous_requests_together() {
    let server = Server::start();
    let live = format!("GET /live HTTP/1.1\r\n{}\r\n", server.host());
    for _ in 0..5 {
        let mut all: Vec<_> = (0..16).map(|_| server.send(&live)).collect();
        for connection in &mut all {
            let mut start = [0; 12];
            connection.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
            connection.read_exact(&mut start).expect("a response while the other connections are open");
            assert_eq!(&start, b"HTTP/1.1 200");
        }
    }
    server.end();
}

#[test]
fn checks_the_method_of_requests() {
    let server = Server::start();
    let ask = |method: &str, path: &str| {
        let response = server.respond(&format!("{method} {path} HTTP/1.1\r\n{}\r\n", server.host()));
        let (head, body) =
            response.split_once("\r\n\r\n").map(|(head, body)| (head.to_owned(), body.to_owned())).unwrap();
        (head, body)
    };
    for path in ["/", "/page.css"] {
        let (head, body) = ask("GET", path);
        assert!(head.starts_with("HTTP/1.1 200") && head.contains(&format!("Content-Length: {}\r\n", body.len())));
        assert_eq!(ask("HEAD", path), (head, String::new()));
    }
    let cases =
        [("POST", "/", "GET, HEAD"), ("PUT", "/live", "GET, HEAD"), ("GET", "/set", "POST"), ("HEAD", "/save", "POST")];
    for (method, path, right) in cases {
        let (head, body) = ask(method, path);
        assert!(head.starts_with("HTTP/1.1 405") && head.contains(&format!("\r\nAllow: {right}")), "{head}");
        assert_eq!(body.is_empty(), method == "HEAD", "{body}");
    }
    server.end();
}

#[test]
fn accepts_content_type_parameters_expect_and_queries() {
    let server = Server::start();
    let typed = |kind| http(server.port, "POST", "/set", &[("Content-Type", kind)], r#"{"name":"gate.on","value":1}"#);
    assert_eq!(typed("application/json; charset=utf-8").0, 200);
    assert_eq!(typed("Application/JSON;charset=utf-8").0, 200);
    assert_eq!(typed("text/plain; application/json").0, 415);
    assert_eq!(typed("application/jsonp").0, 415);
    // curl sends "Expect: 100-continue" for bodies over 1 MiB, other clients also for short ones.
    let post =
        format!("POST /set HTTP/1.1\r\n{}Content-Type: application/json\r\nExpect: 100-continue\r\n", server.host());
    let mut connection = server.send(&format!("{post}Content-Length: 28\r\n\r\n"));
    let mut interim = [0; 25];
    connection.read_exact(&mut interim).unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    connection.write_all(br#"{"name":"gate.on","value":0}"#).unwrap();
    let mut response = String::new();
    connection.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    let response = server.respond(&format!("{post}Content-Length: 3000000\r\n\r\n"));
    assert!(response.starts_with("HTTP/1.1 413") && response.contains("Connection: close"), "{response}");
    for page in ["/?x=1", "/page.js?v=2"] {
        let (status, body) = http(server.port, "GET", page, &[], "");
        assert_eq!((status, body), http(server.port, "GET", page.split('?').next().unwrap(), &[], ""));
        assert_eq!(status, 200);
    }
    server.end();
}

#[test]
fn skips_and_reports_presets_that_cannot_be_played() {
    let folder = Scratch::new();
    let preset = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    preset("a.toml", "[gate]\nonn = true\n");
    preset("b.toml", "[[model]]\nfile = 'none.nam'\n");
    preset("c.toml", "[[model]]\nfile = 'pipe.nam'\n");
    preset("d.toml", "[gate]\non = true\n");
    assert!(Command::new("mkfifo").arg(folder.path().join("pipe.nam")).status().unwrap().success());
    let server = Server::start_in(folder);
    assert_eq!(server.get("/state")["playing"]["preset"], "d.toml");
    assert_eq!(server.value("gate.on"), 1.0);
    let stderr = server.stderr();
    for (name, why) in [("a.toml", "onn"), ("b.toml", "none.nam"), ("c.toml", "pipe.nam: it is not a regular file")] {
        let line = stderr.lines().find(|line| line.contains(&format!("skipped {name}: ")));
        assert!(line.is_some_and(|line| line.contains(why)), "{stderr}");
    }
    // Choosing such a preset is an error.
    let (status, body) = server.post("/choose", r#"{"what":"preset","file":"c.toml"}"#);
    assert!(status == 400 && body.contains("pipe.nam: it is not a regular file"), "{body}");
    let run = server.folder.run("amp serve . --device clock --port 0 --preset a");
    run.expect_status(1);
    assert!(run.stderr().contains("a.toml: line 2"), "{}", run.stderr());
    server.end();
}

#[test]
fn versions_differ_after_a_restart() {
    let version = |server: &Server| server.get("/state")["version"].as_u64().unwrap();
    let server = Server::start();
    let first = version(&server);
    for value in 0..3 {
        assert_eq!(server.post("/set", &format!(r#"{{"name":"tone.bass_db","value":{value}}}"#)).0, 200);
    }
    let last = version(&server);
    // The first search for files can be another change.
    assert!(last >= first + 3, "{first} {last}");
    server.end();
    let server = Server::start();
    let again = version(&server);
    assert!(!(first..=last).contains(&again), "{again} {last}");
    assert!(again < 1 << 53, "must fit into a JavaScript number");
    server.end();
}

#[test]
fn reports_a_removed_folder_once() {
    let server = Server::start();
    fs::remove_dir_all(server.folder.path()).unwrap();
    let (status, body) = server.post("/save", r#"{"name":"zz"}"#);
    assert_eq!(status, 400);
    assert_eq!((body.matches("cannot write").count(), body.matches("zz.toml").count()), (1, 1), "{body}");
    server.end();
}

#[test]
fn rejects_a_used_port_a_missing_folder_and_an_unknown_preset() {
    let server = Server::start();
    let run = server.folder.run(&format!("amp serve . --device clock --port {}", server.port));
    run.expect_status(1);
    assert!(run.stderr().contains(&format!("cannot serve at port {}", server.port)) && run.stderr().contains("--port"));
    let run = server.folder.run("amp serve nowhere --device clock --port 0");
    run.expect_status(1);
    let said = run.stderr();
    assert!(
        said.contains("cannot read the folder nowhere") && said.ends_with("; check its name and folder\n"),
        "{said}"
    );
    let run = server.folder.run("amp serve . --device clock --port 0 --preset lead");
    run.expect_status(64);
    assert!(run.stderr().contains("there is no preset lead"), "{}", run.stderr());
    let run = server.folder.run("amp serve . --device clock --port 0 --bind somewhere");
    run.expect_status(64);
    assert!(run.stderr().contains("must be an IP address of this machine"), "{}", run.stderr());
    let run = server.folder.run("amp serve . --device clock --port 0 --bind 192.0.2.77");
    run.expect_status(1);
    assert!(run.stderr().contains("cannot serve at port 0 of 192.0.2.77") && run.stderr().contains("--bind"));
    fs::write(server.folder.path().join("token"), "secret").unwrap();
    let run = server.folder.run("amp serve . --device clock --port 0 --token-file token");
    run.expect_status(1);
    assert!(run.stderr().contains("cannot use the token in token: "), "{}", run.stderr());
    fs::write(server.folder.path().join(".midi.toml"), "[midi]\n7 = 'tone.bas_db'\n").unwrap();
    let run = server.folder.run("amp serve . --device clock --port 0");
    run.expect_status(1);
    assert!(run.stderr().contains(".midi.toml: unknown parameter"), "{}", run.stderr());
    server.end();
}

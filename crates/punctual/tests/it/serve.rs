//! `amp serve`: the page in a real browser, and what it is asked behind it.

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
use serde_json::Value;

use super::{
    browser::{Browser, http},
    harness::{PUNCTUAL, Scratch, signal, wait_until},
};

const JSON: (&str, &str) = ("Content-Type", "application/json");

/// A library that is served, without a sound card.
struct Served {
    folder: Scratch,
    child: Child,
    port: u16,
}

impl Served {
    /// Two models, one of which is none, and a cabinet in a folder.
    fn start() -> Self {
        Self::start_in(Scratch::new())
    }

    /// The same beside what the folder holds.
    fn start_in(folder: Scratch) -> Self {
        let vectors = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../amp/tests/vectors");
        fs::copy(vectors.join("wn_a1_nano.nam"), folder.path().join("nano.nam")).unwrap();
        fs::write(folder.path().join("broken.nam"), "{").unwrap();
        fs::create_dir(folder.path().join("cabs")).unwrap();
        let spec = WavSpec { channels: 1, sample_rate: 48_000, bits_per_sample: 16, sample_format: SampleFormat::Int };
        let mut cab = WavWriter::create(folder.path().join("cabs/4x12.wav"), spec).unwrap();
        (0..400).for_each(|n| cab.write_sample((20_000.0 * (-f64::from(n) / 40.0).exp()) as i16).unwrap());
        cab.finalize().unwrap();
        let serve = "amp serve . --device clock --port 0 --frames 512 --priority 0";
        let said = File::create(folder.path().join("said")).unwrap();
        // As few files as it can do with, whoever asks.
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -S -n 40 && exec \"$0\" \"$@\"", PUNCTUAL]).args(serve.split(' '));
        let mut child = command.current_dir(folder.path()).stdout(Stdio::piped()).stderr(said).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let port = url.trim().strip_prefix("http://127.0.0.1:").and_then(|rest| rest.strip_suffix('/')).unwrap();
        Self { port: port.parse().unwrap(), folder, child }
    }

    fn get(&self, path: &str) -> Value {
        let (status, body) = http(self.port, "GET", path, &[], "");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
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

    /// What it has said on standard error.
    fn said(&self) -> String {
        fs::read_to_string(self.folder.path().join("said")).unwrap()
    }

    /// A connection that has sent this and keeps silent; nothing is waited for longer than 20 s.
    fn sent(&self, request: &str) -> TcpStream {
        let mut connection = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        connection.write_all(request.as_bytes()).unwrap();
        connection
    }

    /// All that is answered to this, headers included, until the server closes the connection.
    fn answer(&self, request: &str) -> String {
        let mut answer = String::new();
        self.sent(request).read_to_string(&mut answer).expect("it is answered");
        answer
    }

    /// The header that every request has.
    fn host(&self) -> String {
        format!("Host: 127.0.0.1:{}\r\n", self.port)
    }

    /// Ends it as Ctrl-C does.
    fn end(mut self) {
        signal(&self.child, "INT");
        let mut status = None;
        wait_until("it ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        assert_eq!(status.unwrap().code(), Some(0));
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn in_a_browser_models_are_chosen_and_knobs_turned() {
    let served = Served::start();
    let browser = Browser::open(&format!("http://127.0.0.1:{}/", served.port));
    let text = |id: &str| browser.script(&format!("return document.getElementById('{id}').textContent"));
    wait_until("the page is ready", || browser.script("return document.body.dataset.ready") == "true");
    let before = served.get("/live")["periods"].as_u64().unwrap();

    browser.choose("#model1", "nano.nam");
    wait_until("the model plays", || text("said") == "nano.nam plays");
    // Between a choice and its answer the page may show what played before: it must not take that for the choice.
    browser.script(
        "const ask = fetch;
         window.fetch = async (path, more) => { if (path === 'choose') await refresh(); return ask(path, more); };",
    );
    browser.choose("#cabinet", "cabs/4x12.wav");
    wait_until("the cabinet plays", || text("said") == "cabs/4x12.wav plays");
    let playing = served.get("/state")["playing"].clone();
    assert_eq!((&playing["models"][0], &playing["cabinet"]), (&"nano.nam".into(), &"cabs/4x12.wav".into()));

    // What cannot be played is told, and what plays goes on.
    browser.choose("#model2", "broken.nam");
    wait_until("what is broken is told", || text("said").as_str().unwrap().contains("broken.nam"));
    wait_until("the list shows what plays", || browser.script("return document.getElementById('model2').value") == "");
    assert_eq!(served.get("/state")["playing"]["models"][1], Value::Null);

    // By the pointer, where 180 pixels are all of its 30 dB, and by keys.
    let is_at = |value: f64| (served.value("tone.bass_db") - value).abs() < 1e-3;
    browser.drag_up("label.knob:has([id='tone.bass_db']) svg", 60);
    wait_until("the knob is dragged up", || is_at(10.0));
    // An answer that was on its way while the knob was turned does not turn it back.
    browser.script(
        "const ask = fetch, held = new Promise(go => window.release = go);
         window.fetch = async (path, more) => { const answer = await ask(path, more); if (path === 'state') await held; return answer; };
         window.late = refresh();
         window.fetch = ask;",
    );
    browser.keys("[id='tone.bass_db']", "\u{e013}\u{e013}");
    wait_until("two keys turn it by two steps", || is_at(10.2));
    let shown = "release(); return late.then(() => document.getElementById('tone.bass_db').value)";
    assert_eq!(browser.script(shown), "10.2");
    browser.click("[id='gate.on']");
    wait_until("the gate is on", || served.value("gate.on") == 1.0);
    browser.choose("#amp.routing", "parallel");
    wait_until("the routing is another", || served.value("amp.routing") == 1.0);

    browser.keys("#save input", "my tone");
    browser.click("#save button");
    wait_until("it is saved", || text("said") == "saved as my tone.toml");
    let preset = fs::read_to_string(served.folder.path().join("my tone.toml")).unwrap();
    assert!(
        preset.contains("nano.nam") && preset.contains("4x12.wav") && preset.contains("[gate]\non = true"),
        "{preset}"
    );

    // Another's hand is seen here, also while this page turns something and does not look.
    browser.script(
        "const ask = fetch, held = new Promise(go => window.look = () => { window.fetch = ask; go(); });
         window.fetch = async (path, more) => { if (path === 'live') { window.looks = true; await held; } return ask(path, more); };",
    );
    wait_until("it does not look", || browser.script("return String(window.looks)") == "true");
    assert_eq!(served.post("/set", r#"{"name":"tone.treble_db","value":-7.5}"#).0, 200);
    browser.keys("[id='tone.bass_db']", "\u{e013}");
    wait_until("the knob is turned", || is_at(10.3));
    browser.script("look()");
    let shown = "return document.getElementById('tone.treble_db').closest('.knob').querySelector('.value').textContent";
    wait_until("it is seen", || browser.script(shown) == "-7.5 dB");

    assert!(served.get("/live")["periods"].as_u64().unwrap() > before, "it has played on");
    let complaints: Vec<_> =
        browser.complaints().into_iter().filter(|told| !told.contains("400 (Bad Request)")).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    drop(browser);
    served.end();
}

#[test]
fn only_this_page_is_answered_and_only_the_library_is_read() {
    let served = Served::start();
    let set = r#"{"name":"gate.on","value":1}"#;
    let ours = format!("127.0.0.1:{}", served.port);
    let refused = [
        (403, http(served.port, "GET", "/state", &[("Host", "elsewhere.example")], "")),
        (403, http(served.port, "GET", "/", &[("Host", "elsewhere.example")], "")),
        (403, http(served.port, "GET", "/page.js", &[("Host", "elsewhere.example")], "")),
        (403, http(served.port, "GET", "/", &[("Host", &ours), ("Host", "elsewhere.example")], "")),
        (403, http(served.port, "POST", "/set", &[JSON, ("Origin", "http://elsewhere.example")], set)),
        (403, http(served.port, "POST", "/set", &[JSON, ("Origin", "null")], set)),
        (415, http(served.port, "POST", "/set", &[("Content-Type", "text/plain")], set)),
        (404, http(served.port, "GET", "/../etc/passwd", &[], "")),
        (404, http(served.port, "DELETE", "/states", &[], "")),
        (405, http(served.port, "DELETE", "/state", &[], "")),
        (400, served.post("/set", "{")),
        (400, served.post("/set", r#"{"name":"gate.on","value":7}"#)),
        (400, served.post("/set", r#"{"name":"gate.in","value":1}"#)),
        (400, served.post("/choose", r#"{"what":"model1","file":"../nano.nam"}"#)),
        (400, served.post("/choose", r#"{"what":"cabinet","file":"nano.nam"}"#)),
        (400, served.post("/choose", r#"{"what":"model1"}"#)),
        (400, served.post("/save", r#"{"name":"../x"}"#)),
        (413, served.post("/set", &"x".repeat(100_000))),
    ];
    for (expected, (status, body)) in refused {
        assert_eq!(status, expected, "{body}");
        assert!(serde_json::from_str::<Value>(&body).unwrap()["error"].is_string(), "{body}");
    }
    assert_eq!(served.value("gate.on"), 0.0);
    // A preset of that name that somebody else wrote is not lost.
    fs::write(served.folder.path().join("theirs.toml"), "[gate]\non = true\n").unwrap();
    assert!(served.post("/save", r#"{"name":"theirs"}"#).1.contains("already"));
    assert_eq!(served.post("/choose", r#"{"what":"preset","file":"theirs.toml"}"#).0, 200);
    assert_eq!(served.value("gate.on"), 1.0);
    served.end();
}

#[test]
fn who_stalls_keeps_nobody_else_waiting() {
    let served = Served::start();
    let host = served.host();
    let json = "Content-Type: application/json\r\n";
    // One byte of the body, so that what is answered is answered for its headers.
    let post = |headers: &str| served.sent(&format!("POST /set HTTP/1.1\r\n{host}{headers}\r\n{{"));
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
        let mut answer = [0; 12];
        connection.read_exact(&mut answer).expect("it is answered before its body has come");
        assert_eq!(std::str::from_utf8(&answer).unwrap(), format!("HTTP/1.1 {status}"));
        stalled.push(connection);
    }
    // Short bodies that do not come either, and somebody who asks more than he ever reads.
    stalled.extend((0..5).map(|_| post(&format!("{json}Content-Length: 30\r\n"))));
    stalled.push(served.sent(&format!("GET /state HTTP/1.1\r\n{host}\r\n").repeat(2000)));

    // Far more than there are threads, at every place where one can stall.
    let begun = ["", "GET /live HT", "GET /live HTTP/1.1\r\nHost: ", "POST /set HTTP/1.1\r\nContent-Length: 9\r\n"];
    stalled.extend(begun.iter().cycle().take(240).map(|begun| served.sent(begun)));

    let answer = served.answer(&format!("GET /live HTTP/1.1\r\n{host}\r\n"));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(served.value("gate.on"), 0.0);
    // With those of them still there that were not dropped for others.
    served.end();
    drop(stalled);
}

#[test]
fn who_stalls_is_dropped_even_when_nobody_else_asks() {
    let served = Served::start();
    let (mut silent, mut slow) = (served.sent(""), served.sent("GET /live HTTP/1.1\r\n"));
    let started = Instant::now();
    // However often something comes.
    while started.elapsed() < Duration::from_secs(6) {
        slow.write_all(b"X: y\r\n").unwrap();
        thread::sleep(Duration::from_millis(200));
    }
    for stalled in [&mut silent, &mut slow] {
        let mut answer = String::new();
        stalled.read_to_string(&mut answer).expect("it is dropped");
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    }
    served.end();
}

#[test]
fn who_asks_at_once_is_answered_at_once() {
    let served = Served::start();
    let live = format!("GET /live HTTP/1.1\r\n{}\r\n", served.host());
    for _ in 0..5 {
        let mut all: Vec<_> = (0..16).map(|_| served.sent(&live)).collect();
        for asked in &mut all {
            let mut answer = [0; 12];
            asked.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
            asked.read_exact(&mut answer).expect("all are answered while all are kept open");
            assert_eq!(&answer, b"HTTP/1.1 200");
        }
    }
    served.end();
}

#[test]
fn methods_are_told_apart() {
    let served = Served::start();
    let ask = |method: &str, path: &str| {
        let answer = served.answer(&format!("{method} {path} HTTP/1.1\r\n{}\r\n", served.host()));
        let (head, body) =
            answer.split_once("\r\n\r\n").map(|(head, body)| (head.to_owned(), body.to_owned())).unwrap();
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
    served.end();
}

#[test]
fn what_other_clients_send_is_understood() {
    let served = Served::start();
    let typed = |kind| http(served.port, "POST", "/set", &[("Content-Type", kind)], r#"{"name":"gate.on","value":1}"#);
    assert_eq!(typed("application/json; charset=utf-8").0, 200);
    assert_eq!(typed("Application/JSON;charset=utf-8").0, 200);
    assert_eq!(typed("text/plain; application/json").0, 415);
    assert_eq!(typed("application/jsonp").0, 415);
    // curl asks first for what is longer than 1 MiB, others also for what is short.
    let post =
        format!("POST /set HTTP/1.1\r\n{}Content-Type: application/json\r\nExpect: 100-continue\r\n", served.host());
    let mut asks = served.sent(&format!("{post}Content-Length: 28\r\n\r\n"));
    let mut called = [0; 25];
    asks.read_exact(&mut called).unwrap();
    assert_eq!(&called, b"HTTP/1.1 100 Continue\r\n\r\n");
    asks.write_all(br#"{"name":"gate.on","value":0}"#).unwrap();
    let mut answer = String::new();
    asks.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let answer = served.answer(&format!("{post}Content-Length: 3000000\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("Connection: close"), "{answer}");
    for page in ["/?x=1", "/page.js?v=2"] {
        let (status, body) = http(served.port, "GET", page, &[], "");
        assert_eq!((status, body), http(served.port, "GET", page.split('?').next().unwrap(), &[], ""));
        assert_eq!(status, 200);
    }
    served.end();
}

#[test]
fn a_preset_that_cannot_be_played_is_left_out_and_told() {
    let folder = Scratch::new();
    let preset = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    preset("a.toml", "[gate]\nonn = true\n");
    preset("b.toml", "[[model]]\nfile = 'none.nam'\n");
    preset("c.toml", "[[model]]\nfile = 'pipe.nam'\n");
    preset("d.toml", "[gate]\non = true\n");
    assert!(Command::new("mkfifo").arg(folder.path().join("pipe.nam")).status().unwrap().success());
    let served = Served::start_in(folder);
    assert_eq!(served.get("/state")["playing"]["preset"], "d.toml");
    assert_eq!(served.value("gate.on"), 1.0);
    let said = served.said();
    for (name, why) in [("a.toml", "onn"), ("b.toml", "none.nam"), ("c.toml", "pipe.nam is not a regular file")] {
        let line = said.lines().find(|line| line.contains(&format!("{name} is left out")));
        assert!(line.is_some_and(|line| line.contains(why)), "{said}");
    }
    // What is chosen is not left out in silence either.
    let (status, body) = served.post("/choose", r#"{"what":"preset","file":"c.toml"}"#);
    assert!(status == 400 && body.contains("pipe.nam is not a regular file"), "{body}");
    let run = served.folder.run("amp serve . --device clock --port 0 --preset a");
    run.expect_status(1);
    assert!(run.stderr().contains("a.toml: line 2"), "{}", run.stderr());
    served.end();
}

#[test]
fn a_page_that_stays_open_over_a_restart_sees_another_version() {
    let version = |served: &Served| served.get("/state")["version"].as_u64().unwrap();
    let served = Served::start();
    let first = version(&served);
    for value in 0..3 {
        assert_eq!(served.post("/set", &format!(r#"{{"name":"tone.bass_db","value":{value}}}"#)).0, 200);
    }
    let last = version(&served);
    assert_eq!(last, first + 3);
    served.end();
    let served = Served::start();
    let again = version(&served);
    assert!(!(first..=last).contains(&again), "{again} {last}");
    assert!(again < 1 << 53, "a number of JavaScript has room for it");
    served.end();
}

#[test]
fn a_folder_that_has_gone_is_told_once() {
    let served = Served::start();
    fs::remove_dir_all(served.folder.path()).unwrap();
    let (status, body) = served.post("/save", r#"{"name":"zz"}"#);
    assert_eq!(status, 400);
    assert_eq!((body.matches("cannot write").count(), body.matches("zz.toml").count()), (1, 1), "{body}");
    served.end();
}

#[test]
fn what_stands_in_the_way_is_told() {
    let served = Served::start();
    let run = served.folder.run(&format!("amp serve . --device clock --port {}", served.port));
    run.expect_status(1);
    assert!(run.stderr().contains(&format!("cannot serve at port {}", served.port)) && run.stderr().contains("--port"));
    let run = served.folder.run("amp serve nowhere --device clock --port 0");
    run.expect_status(1);
    assert!(run.stderr().contains("cannot look into nowhere"), "{}", run.stderr());
    let run = served.folder.run("amp serve . --device clock --port 0 --preset lead");
    run.expect_status(64);
    assert!(run.stderr().contains("there is no preset lead"), "{}", run.stderr());
    served.end();
}

//! A browser controlled by the WebDriver protocol (W3C), and plain HTTP requests.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

/// Sends a request to a port of this machine; returns the status and the body of the response.
pub fn http(port: u16, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).expect("a server");
    let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    if !headers.iter().any(|(name, _)| *name == "Host") {
        request += &format!("Host: 127.0.0.1:{port}\r\n");
    }
    headers.iter().for_each(|(name, value)| request += &format!("{name}: {value}\r\n"));
    connection.write_all(format!("{request}\r\n{body}").as_bytes()).expect("an open connection");
    // The body is not read up to the end of the connection, because chromedriver keeps it open.
    let mut answer = BufReader::new(connection);
    let mut line = || {
        let mut line = String::new();
        answer.read_line(&mut line).map(|_| line.trim_end().to_owned()).expect("a response")
    };
    let status = line().split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let mut length = 0;
    loop {
        let header = line().to_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    answer.read_exact(&mut body).expect("a whole body");
    (status, String::from_utf8_lossy(&body).into_owned())
}

/// Chromium without a screen.
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
}

impl Browser {
    pub fn open(url: &str) -> Self {
        let mut driver =
            Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).spawn().unwrap_or_else(|error| {
                panic!("cannot run chromedriver ({error}): install it with `sudo apt-get install -y chromium-driver`")
            });
        let lines = BufReader::new(driver.stdout.take().expect("it is piped")).lines();
        let port_in = |line: String| line.split("successfully on port ").nth(1)?.trim_end_matches('.').parse().ok();
        let port = lines.map_while(Result::ok).find_map(port_in).expect("chromedriver prints its port");
        let mut browser = Self { driver, port, session: String::new() };
        let arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--window-size=1250,900"];
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": { "args": arguments }, "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let session = browser.request("POST", "/session", &wanted);
        browser.session = format!("/session/{}", session["sessionId"].as_str().expect("a session"));
        browser.visit(url);
        browser
    }

    /// Opens another page.
    pub fn visit(&self, url: &str) {
        self.command("/url", &json!({ "url": url }));
    }

    fn request(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let (status, answer) = http(self.port, method, path, &[("Content-Type", "application/json")], &body);
        assert_eq!(status, 200, "{path}: {answer}");
        serde_json::from_str::<Value>(&answer).expect("JSON")["value"].take()
    }

    /// Sends a command to the session.
    pub fn command(&self, path: &str, body: &Value) -> Value {
        self.request("POST", &format!("{}{path}", self.session), body)
    }

    /// Runs a script in the page and returns its value.
    pub fn script(&self, script: &str) -> Value {
        self.command("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    fn element(&self, css: &str) -> String {
        let found = self.command("/element", &json!({ "using": "css selector", "value": css }));
        let (_, id) = found.as_object().and_then(|found| found.iter().next()).expect("an element");
        format!("/element/{}", id.as_str().expect("an identifier"))
    }

    pub fn click(&self, css: &str) {
        self.command(&format!("{}/click", self.element(css)), &json!({}));
    }

    /// Types keys. Keys without a letter have code points of the private use area, as WebDriver defines.
    pub fn keys(&self, css: &str, text: &str) {
        self.command(&format!("{}/value", self.element(css)), &json!({ "text": text }));
    }

    /// Selects an option of a list by its text.
    pub fn choose(&self, css: &str, text: &str) {
        let found = self.command(
            "/element",
            &json!({
                "using": "xpath", "value": format!("//select[@id='{}']//option[.='{text}']", &css[1..]),
            }),
        );
        let (_, id) = found.as_object().and_then(|found| found.iter().next()).expect("an option");
        self.command(&format!("/element/{}/click", id.as_str().expect("an identifier")), &json!({}));
    }

    /// Drags from the middle of an element up by this many pixels.
    pub fn drag_up(&self, css: &str, pixels: i32) {
        let (_, id) = self.element(css).rsplit_once('/').map(|(a, b)| (a.to_owned(), b.to_owned())).expect("a name");
        let origin = json!({ "element-6066-11e4-a52e-4f735466cecf": id });
        self.command(
            "/actions",
            &json!({ "actions": [{ "type": "pointer", "id": "mouse", "actions": [
            { "type": "pointerMove", "duration": 0, "x": 0, "y": 0, "origin": origin },
            { "type": "pointerDown", "button": 0 },
            { "type": "pointerMove", "duration": 100, "x": 0, "y": -pixels, "origin": "pointer" },
            { "type": "pointerUp", "button": 0 },
        ] }] }),
        );
    }

    /// Drags a file of this machine into the window and drops it at an element.
    pub fn drop_file(&self, css: &str, path: &Path) {
        let at = self.script(&format!(
            "const box = document.querySelector({css:?}).getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]"
        ));
        let data = json!({ "items": [], "files": [path], "dragOperationsMask": 1 });
        for kind in ["dragEnter", "dragOver", "drop"] {
            let event = json!({ "type": kind, "x": at[0], "y": at[1], "data": data });
            self.command("/goog/cdp/execute", &json!({ "cmd": "Input.dispatchDragEvent", "params": event }));
        }
    }

    /// The visible buttons, fields and lists without a name for screen readers.
    pub fn unnamed_controls(&self) -> Value {
        self.script(
            "const name = element => element.ariaLabel || element.textContent.trim() || [...element.labels].map(label => label.textContent.trim()).join('');
             const isShown = element => element.checkVisibility();
             return [...document.querySelectorAll('button, input, select, summary')].filter(isShown).filter(element => !name(element)).map(element => element.outerHTML)",
        )
    }

    /// Deletes all cookies of the page.
    pub fn forget_cookies(&self) {
        self.request("DELETE", &format!("{}/cookie", self.session), &Value::Null);
    }

    /// The messages in the log of the browser.
    pub fn complaints(&self) -> Vec<String> {
        let log = self.command("/se/log", &json!({ "type": "browser" }));
        let message = |entry: &Value| entry["message"].as_str().unwrap_or_default().to_owned();
        log.as_array().expect("a list").iter().map(message).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            // Chromium outlives its driver unless the session is deleted. A second panic would hide the failure of a
            // test.
            let _ = catch_unwind(AssertUnwindSafe(|| self.request("DELETE", &self.session, &Value::Null)));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

//! The web page: a small server on loopback, for one desk.
//!
//! It answers this machine alone. A page of another site, which a browser here may have open, can send requests too, so what
//! changes something must come as JSON (which such a page may not send unasked) and name this server as its host (which a
//! name that was bent to point here does not).
//!
//! Who asks and then stalls, be it while sending or while reading, keeps one thread and nobody else: see `crew`.

mod crew;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;
use tiny_http::{Header, Method, Request, Response, Server};

use self::crew::Crew;

/// The page and what belongs to it: path, type, content.
const FILES: [(&str, &str, &str); 3] = [
    ("/", "text/html; charset=utf-8", include_str!("page/page.html")),
    ("/page.css", "text/css; charset=utf-8", include_str!("page/page.css")),
    ("/page.js", "text/javascript; charset=utf-8", include_str!("page/page.js")),
];
/// Nothing from elsewhere, nothing written into the page.
const POLICY: &str = "default-src 'self'; img-src data:; frame-ancestors 'none'; form-action 'none'";
/// Largest request, bytes: so much the server has read whole (`new_request` of `tiny_http`) before anybody here has to wait for
/// it, and what is larger is refused unread.
const MOST_BYTES: usize = 1024;

/// What the page shows and turns. Everything here is called by several threads.
pub trait Desk: Send + Sync {
    /// All that can be chosen and set, and what is.
    fn state(&self) -> Value;
    /// Meters and the like, as they are now.
    fn live(&self) -> Value;
    /// Sets a parameter; answers the version of the state since.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    fn set(&self, name: &str, value: f32) -> Result<u64, String>;
    /// Plays another file of the library in this place; nothing, where `None`.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    fn choose(&self, place: Place, file: Option<&str>) -> Result<(), String>;
    /// Keeps what plays as a preset of this name; answers what its file is called.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    fn save(&self, name: &str) -> Result<String, String>;
}

/// What a file is chosen for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// Everything.
    Preset,
    /// The first model.
    Model1,
    /// The second model.
    Model2,
    /// The cabinet.
    Cabinet,
}

/// Why there is no page.
#[derive(Debug, Error)]
#[error("cannot serve at port {port} of this machine: {source}; choose another by --port")]
pub struct PageError {
    port: u16,
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// A page that is ready to be served.
pub struct Page {
    server: Server,
    address: SocketAddr,
}

impl Page {
    /// Takes a port of loopback; any free one for 0.
    ///
    /// # Errors
    /// [`PageError`].
    pub fn open(port: u16) -> Result<Self, PageError> {
        allow_connections();
        let wrong = |source| PageError { port, source };
        let server = Server::http((Ipv4Addr::LOCALHOST, port)).map_err(wrong)?;
        let address = server.server_addr().to_ip().ok_or_else(|| wrong("no address".into()))?;
        Ok(Self { server, address })
    }

    /// Where a browser finds it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Serves from now on, by threads that end with the process.
    ///
    /// # Errors
    /// When the system has no room for a thread.
    pub fn serve(self, desk: Arc<dyn Desk>) -> io::Result<()> {
        Crew::new(self, desk).begin()
    }

    fn answer(&self, mut request: Request, desk: &dyn Desk) {
        let (status, kind, body) = match FILES.iter().find(|(path, ..)| *path == path_of(&request)) {
            Some((_, kind, text)) if *request.method() == Method::Get => (200, *kind, (*text).to_owned()),
            _ => {
                let (status, answer) = self.ask(&mut request, desk);
                (status, "application/json", answer.to_string())
            }
        };
        let mut response = Response::from_string(body).with_status_code(status);
        let headers = [
            ("Content-Type", kind),
            ("Content-Security-Policy", POLICY),
            ("X-Content-Type-Options", "nosniff"),
            ("Cache-Control", "no-store"),
        ];
        for (name, value) in headers {
            response.add_header(Header::from_bytes(name, value).expect("these are right"));
        }
        // Who has gone needs no answer. Who has not sent all is waited for here, once it has been answered.
        let _ = request.respond(response);
    }

    fn ask(&self, request: &mut Request, desk: &dyn Desk) -> (u16, Value) {
        let refuse = |status, error: &str| (status, json!({ "error": error }));
        if !self.is_meant(request) {
            return refuse(403, "this page answers only to its own address");
        }
        match (request.method(), path_of(request)) {
            (Method::Get, "/state") => (200, desk.state()),
            (Method::Get, "/live") => (200, desk.live()),
            (Method::Post, path @ ("/set" | "/choose" | "/save")) => {
                let path = path.to_owned();
                if let Some((status, error)) = fault(request) {
                    return refuse(status, &error);
                }
                match read(request).map_err(|error| error.to_string()).and_then(|body| change(&path, &body, desk)) {
                    Ok(answer) => (200, answer),
                    Err(error) => refuse(400, &error),
                }
            }
            _ => refuse(404, "there is no such thing here"),
        }
    }

    /// Whether it was sent to this server, from this page where it says from where.
    fn is_meant(&self, request: &Request) -> bool {
        let port = self.address.port();
        let names = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{port}"));
        let host = header(request, "Host").is_some_and(|host| names.iter().any(|name| name == host));
        let origin = header(request, "Origin").and_then(|origin| origin.strip_prefix("http://").or(Some("")));
        host && origin.is_none_or(|origin| names.iter().any(|name| name == origin))
    }
}

/// Has as many files open as the system grants: the server takes two for a connection, and falls over one that it has none for.
fn allow_connections() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // What is granted is not refused; and where it is, there are fewer.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

fn header<'a>(request: &'a Request, name: &'static str) -> Option<&'a str> {
    request.headers().iter().find(|header| header.field.equiv(name)).map(|header| header.value.as_str())
}

/// What is asked for, without what a page may be given on its way.
fn path_of(request: &Request) -> &str {
    request.url().split('?').next().unwrap_or_default()
}

/// Whether JSON was sent, whatever else is told of it.
fn is_json(request: &Request) -> bool {
    let kind = header(request, "Content-Type").and_then(|kind| kind.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// What is wrong with a request that is to change something, as far as its headers tell.
fn fault(request: &Request) -> Option<(u16, String)> {
    // With these the server leaves to us what follows, however short it is.
    let upgrades = header(request, "Connection").is_some_and(|value| value.to_ascii_lowercase().contains("upgrade"));
    let is_late = upgrades || header(request, "Expect").is_some();
    match request.body_length() {
        _ if !is_json(request) => Some((415, "send application/json".to_owned())),
        _ if is_late => Some((417, "send all at once, without Expect or an upgrade".to_owned())),
        None => Some((411, "send it with a Content-Length".to_owned())),
        Some(length) if length > MOST_BYTES => Some((413, format!("send at most {MOST_BYTES} bytes"))),
        Some(_) => None,
    }
}

fn read(request: &mut Request) -> io::Result<String> {
    let mut body = String::new();
    io::Read::read_to_string(&mut io::Read::take(request.as_reader(), MOST_BYTES as u64), &mut body)?;
    Ok(body)
}

#[derive(Deserialize)]
struct Set {
    name: String,
    value: f32,
}

#[derive(Deserialize)]
struct Choose {
    what: Place,
    file: Option<String>,
}

#[derive(Deserialize)]
struct Save {
    name: String,
}

fn change(path: &str, body: &str, desk: &dyn Desk) -> Result<Value, String> {
    fn parse<'a, T: Deserialize<'a>>(body: &'a str) -> Result<T, String> {
        serde_json::from_str(body).map_err(|error| format!("not understood: {error}"))
    }
    match path {
        "/set" => {
            let Set { name, value } = parse(body)?;
            desk.set(&name, value).map(|version| json!({ "version": version }))
        }
        "/choose" => {
            let Choose { what, file } = parse(body)?;
            desk.choose(what, file.as_deref()).map(|()| json!({}))
        }
        _ => desk.save(&parse::<Save>(body)?.name).map(|saved| json!({ "saved": saved })),
    }
}

//! Routing of requests: checks that they are meant for this page, and finds the action that each asks for.

use std::{
    io::{Read, Write},
    net::SocketAddr,
    sync::{MutexGuard, TryLockError},
};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    access::{Access, Token},
    backend::{Act, Backend, Slot, Upload, UploadError},
    request::Request,
    response::Response,
};

/// The port that a browser omits from the host.
const DEFAULT_PORT: u16 = 80;
/// The files of the page: path, content type, content.
const FILES: [(&str, &str, &str); 3] = [
    ("/", "text/html; charset=utf-8", include_str!("page.html")),
    ("/page.css", "text/css; charset=utf-8", include_str!("page.css")),
    ("/page.js", "text/javascript; charset=utf-8", include_str!("page.js")),
];

/// Routes the requests to one address.
pub struct Router<'a> {
    /// The allowed values of the Host header.
    hosts: Vec<String>,
    /// Name of the cookie that contains the token. Cookies do not depend on the port, so its name does.
    cookie: String,
    access: &'a Access,
}

/// A request with the action that it asks for.
pub struct RoutedRequest<'a> {
    is_head: bool,
    action: Result<Action<'a>, Response>,
}

/// An action that a valid request asks for.
enum Action<'a> {
    /// Content type and content.
    File(&'static str, &'static str),
    State,
    Live,
    Set(Set),
    Choose(Choose),
    Save(Save),
    Act(Act),
    /// The file, and the permission to hold it in memory.
    Upload(Upload, MutexGuard<'a, ()>),
}

#[derive(Deserialize)]
struct Set {
    name: String,
    value: f32,
}

#[derive(Deserialize)]
struct Choose {
    what: Slot,
    /// Must be present, so that a forgotten `file` does not empty the slot.
    #[serde(deserialize_with = "Option::deserialize")]
    file: Option<String>,
}

#[derive(Deserialize)]
struct Save {
    name: String,
}

impl<'a> Router<'a> {
    /// A router for requests that arrived at this address.
    pub fn new(address: SocketAddr, access: &'a Access) -> Self {
        let (ip, port) = (address.ip().to_canonical(), address.port());
        let mut names: Vec<&str> = access.names.iter().map(String::as_str).collect();
        if ip.is_loopback() {
            names.push("localhost");
        }
        let ip = if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() };
        names.push(&ip);
        let mut hosts: Vec<String> = names.iter().map(|name| format!("{name}:{port}")).collect();
        if port == DEFAULT_PORT {
            hosts.extend(names.into_iter().map(str::to_owned));
        }
        Self { hosts, cookie: format!("punctual-{port}"), access }
    }

    /// Reads a request and finds its action.
    pub fn route(&self, stream: &mut (impl Read + Write)) -> RoutedRequest<'a> {
        match Request::read(stream) {
            Ok(request) => RoutedRequest { is_head: request.method() == "HEAD", action: self.action(request, stream) },
            Err(error) => RoutedRequest { is_head: false, action: Err(error) },
        }
    }

    fn action(&self, request: Request, stream: &mut (impl Read + Write)) -> Result<Action<'a>, Response> {
        if !self.is_allowed(&request) {
            let text =
                "the Host and Origin of a request must be the address of this page: open the link that punctual prints";
            return Err(Response::error(403, text));
        }
        if let Some(token) = &self.access.token {
            self.check_token(&request, token)?;
        }
        match (request.method(), request.path()) {
            ("POST", "/set") => parse(request, stream).map(Action::Set),
            ("POST", "/choose") => parse(request, stream).map(Action::Choose),
            ("POST", "/save") => parse(request, stream).map(Action::Save),
            ("POST", "/act") => parse(request, stream).map(Action::Act),
            ("POST", "/upload") => self.upload(request, stream),
            (_, "/set" | "/choose" | "/save" | "/act" | "/upload") => Err(Response::method_not_allowed("POST")),
            (method, path) => match readable(path) {
                None => Err(Response::error(404, "there is nothing at this address")),
                Some(action) if ["GET", "HEAD"].contains(&method) => Ok(action),
                Some(_) => Err(Response::method_not_allowed("GET, HEAD")),
            },
        }
    }

    /// True if the request names this server as its host, and as its origin if it has one.
    fn is_allowed(&self, request: &Request) -> bool {
        let Some(host) = request.header("host") else { return false };
        let is_host =
            |origin: &str| origin.strip_prefix("http://").is_some_and(|other| other.eq_ignore_ascii_case(host));
        self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host)) && request.header("origin").is_none_or(is_host)
    }

    /// Checks that a cookie or the Authorization header contains the token.
    ///
    /// # Errors
    /// The response to any other request. A browser that opens the link receives the cookie.
    fn check_token(&self, request: &Request, token: &Token) -> Result<(), Response> {
        let is_page = ["GET", "HEAD"].contains(&request.method()) && request.path() == "/";
        if is_page && request.field("token").is_some_and(|given| token.is(&given)) {
            return Err(Response::enter(&self.cookie, token.as_str()));
        }
        // The name of the scheme has no case (RFC 9110, section 11.1).
        let (scheme, given) =
            request.header("authorization").and_then(|value| value.split_once(' ')).unwrap_or_default();
        let bearer = scheme.eq_ignore_ascii_case("Bearer").then(|| given.trim_start());
        match request.cookie(&self.cookie).into_iter().chain(bearer).any(|given| token.is(given)) {
            true => Ok(()),
            false if is_page => Err(Response::locked()),
            false => Err(Response::unauthorized()),
        }
    }

    /// Receives a file, one at a time.
    fn upload(&self, request: Request, stream: &mut (impl Read + Write)) -> Result<Action<'a>, Response> {
        let name = request.field("name").ok_or_else(|| Response::error(400, "the upload needs ?name=FILE"))?;
        let overwrite = request.field("overwrite").is_some_and(|value| value == "1");
        let turn = match self.access.uploading.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err(Response::error(503, "another file is being uploaded: wait until it is complete"));
            }
        };
        let bytes = request.file(stream)?;
        Ok(Action::Upload(Upload { name, overwrite, bytes }, turn))
    }
}

impl RoutedRequest<'_> {
    /// Performs the action, which may take as long as loading a model, and returns the response.
    pub fn respond(self, backend: &dyn Backend) -> Response {
        let response = self.action.map_or_else(|error| error, |action| action.perform(backend));
        if self.is_head { response.without_body() } else { response }
    }
}

impl Action<'_> {
    fn perform(self, backend: &dyn Backend) -> Response {
        let result = match self {
            Self::File(content_type, text) => return Response::file(content_type, text),
            Self::Upload(file, _turn) => return uploaded(backend.upload(file)),
            Self::State => Ok(backend.state()),
            Self::Live => Ok(backend.live()),
            Self::Set(Set { name, value }) => backend.set(&name, value).map(|version| json!({ "version": version })),
            Self::Choose(Choose { what, file }) => backend.choose(what, file.as_deref()).map(|()| json!({})),
            Self::Save(Save { name }) => backend.save(&name).map(|saved| json!({ "saved": saved })),
            Self::Act(act) => backend.act(act).map(|message| json!({ "message": message })),
        };
        result.map_or_else(|error| Response::error(400, &error), |value: Value| Response::json(&value))
    }
}

fn uploaded(result: Result<(String, Slot), UploadError>) -> Response {
    match result {
        Ok((file, slot)) => Response::json(&json!({ "file": file, "what": slot })),
        Err(error @ UploadError::Exists(_)) => Response::error(409, &error.to_string()),
        Err(error) => Response::error(400, &error.to_string()),
    }
}

/// The action of a GET or HEAD request.
fn readable(path: &str) -> Option<Action<'static>> {
    match path {
        "/state" => Some(Action::State),
        "/live" => Some(Action::Live),
        _ => FILES.iter().find(|(known, ..)| *known == path).map(|(_, kind, text)| Action::File(kind, text)),
    }
}

fn parse<T: for<'a> Deserialize<'a>>(request: Request, stream: &mut (impl Read + Write)) -> Result<T, Response> {
    let body = request.json(stream)?;
    serde_json::from_str(&body).map_err(|error| Response::error(400, &format!("invalid request body: {error}")))
}

#[cfg(test)]
mod tests {
    use std::{io::Cursor, net::IpAddr};

    use super::*;

    fn request(text: &str) -> Request {
        Request::read(&mut text.as_bytes()).unwrap_or_else(|_| panic!("{text}"))
    }

    #[test]
    fn checks_host_and_origin() {
        let local = Access::local();
        let public = Access { names: vec!["pi.local".to_owned()], ..Access::local() };
        let is_allowed = |address: &str, port: u16, headers: &str| {
            let address: IpAddr = address.parse().unwrap();
            let access = if address.to_canonical().is_loopback() { &local } else { &public };
            let request = request(&format!("GET / HTTP/1.1\r\n{headers}\r\n\r\n"));
            Router::new((address, port).into(), access).is_allowed(&request)
        };
        for (address, port, headers) in [
            ("127.0.0.1", 8077, "Host: 127.0.0.1:8077"),
            ("127.0.0.1", 8077, "Host: LocalHost:8077\r\nOrigin: http://localhost:8077"),
            ("127.0.0.1", 80, "Host: 127.0.0.1\r\nOrigin: http://127.0.0.1"),
            ("127.0.0.1", 80, "Host: localhost"),
            ("127.0.0.1", 80, "Host: localhost:80"),
            ("::1", 8077, "Host: [::1]:8077\r\nOrigin: http://[::1]:8077"),
            ("::ffff:192.168.1.5", 8077, "Host: 192.168.1.5:8077"),
            ("192.168.1.5", 8077, "Host: Pi.local:8077\r\nOrigin: http://pi.local:8077"),
        ] {
            assert!(is_allowed(address, port, headers), "{port} {headers}");
        }
        for (address, port, headers) in [
            ("127.0.0.1", 8077, "Host: localhost"),
            ("127.0.0.1", 8077, "Host: localhost:80"),
            ("127.0.0.1", 80, "Host: elsewhere.example"),
            ("127.0.0.1", 80, "Host: localhost:8077"),
            ("127.0.0.1", 80, "Host: localhost\r\nOrigin: http://elsewhere.example"),
            ("127.0.0.1", 80, "Host: localhost\r\nOrigin: https://localhost"),
            ("127.0.0.1", 80, "Host: localhost\r\nOrigin: http://127.0.0.1"),
            ("127.0.0.1", 80, "Accept: */*"),
            ("192.168.1.5", 8077, "Host: localhost:8077"),
            ("192.168.1.5", 8077, "Host: 192.168.1.6:8077"),
            ("192.168.1.5", 8077, "Host: rebound.example:8077"),
            ("192.168.1.5", 8077, "Host: pi.local:8077\r\nOrigin: http://192.168.1.5:8077"),
        ] {
            assert!(!is_allowed(address, port, headers), "{port} {headers}");
        }
    }

    #[test]
    fn every_request_needs_the_token() {
        let access = Access::with_token("0123");
        let answer = |line: &str, headers: &str| {
            let text = format!("{line} HTTP/1.1\r\nHost: 10.0.0.2:8077\r\n{headers}\r\n");
            let address = "10.0.0.2:8077".parse().unwrap();
            let result = Router::new(address, &access).action(request(&text), &mut Cursor::new(Vec::new()));
            let mut sent = Vec::new();
            result.err().map(|error| {
                error.send(&mut sent).unwrap();
                String::from_utf8(sent).unwrap()
            })
        };
        let refused =
            |line: &str, headers: &str| answer(line, headers).is_some_and(|text| text.starts_with("HTTP/1.1 401 "));
        for path in ["/", "/page.css", "/page.js", "/state", "/live", "/?token=", "/?token=0124", "/?token=01234"] {
            assert!(refused(&format!("GET {path}"), ""), "{path}");
            assert!(refused(&format!("GET {path}"), "Cookie: punctual-8077=0124\r\n"), "{path}");
        }
        for path in ["/set", "/choose", "/save", "/act", "/upload?name=a.nam", "/set?token=0123"] {
            assert!(refused(&format!("POST {path}"), ""), "{path}");
        }
        // The link stores the token in a cookie that scripts cannot read, and leaves the address bar.
        let entered = answer("GET /?token=0123", "").unwrap();
        assert!(entered.starts_with("HTTP/1.1 303 ") && entered.contains("\r\nLocation: /\r\n"), "{entered}");
        assert!(
            entered.contains("\r\nSet-Cookie: punctual-8077=0123; Path=/; HttpOnly; SameSite=Lax\r\n"),
            "{entered}"
        );
        assert!(entered.contains("\r\nReferrer-Policy: no-referrer\r\n"), "{entered}");
        assert_eq!(answer("GET /state", "Cookie: a=b; punctual-8077=0123\r\n"), None);
        assert_eq!(answer("GET /state", "Authorization: Bearer 0123\r\n"), None);
        assert_eq!(answer("GET /state", "Authorization: bearer  0123\r\n"), None);
        assert!(
            refused("GET /state", "Cookie: punctual-80=0123\r\n") && refused("GET /state", "Authorization: 0123\r\n")
        );
    }
}

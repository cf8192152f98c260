//! Routing of requests: checks that they are meant for this page, and finds the action that each asks for.

use std::{
    io::{Read, Write},
    net::SocketAddr,
};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    backend::{Backend, Slot},
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
pub struct Router {
    /// The allowed values of the Host header.
    hosts: Vec<String>,
}

/// A request with the action that it asks for.
pub struct RoutedRequest {
    is_head: bool,
    action: Result<Action, Response>,
}

/// An action that a valid request asks for.
enum Action {
    /// Content type and content.
    File(&'static str, &'static str),
    State,
    Live,
    Set(Set),
    Choose(Choose),
    Save(Save),
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

impl Router {
    pub fn new(address: SocketAddr) -> Self {
        let names = ["127.0.0.1", "localhost"];
        let mut hosts = names.map(|name| format!("{name}:{}", address.port())).to_vec();
        if address.port() == DEFAULT_PORT {
            hosts.extend(names.map(str::to_owned));
        }
        Self { hosts }
    }

    /// Reads a request and finds its action.
    pub fn route(&self, stream: &mut (impl Read + Write)) -> RoutedRequest {
        match Request::read(stream) {
            Ok(request) => RoutedRequest { is_head: request.method() == "HEAD", action: self.action(request, stream) },
            Err(error) => RoutedRequest { is_head: false, action: Err(error) },
        }
    }

    fn action(&self, request: Request, stream: &mut (impl Read + Write)) -> Result<Action, Response> {
        if !self.is_allowed(&request) {
            return Err(Response::error(403, "the Host and Origin of a request must be the address of this page"));
        }
        match (request.method(), request.path()) {
            ("POST", "/set") => parse(request, stream).map(Action::Set),
            ("POST", "/choose") => parse(request, stream).map(Action::Choose),
            ("POST", "/save") => parse(request, stream).map(Action::Save),
            (_, "/set" | "/choose" | "/save") => Err(Response::method_not_allowed("POST")),
            (method, path) => match readable(path) {
                None => Err(Response::error(404, "there is nothing at this address")),
                Some(action) if ["GET", "HEAD"].contains(&method) => Ok(action),
                Some(_) => Err(Response::method_not_allowed("GET, HEAD")),
            },
        }
    }

    /// True if the request names this server as its host, and as its origin if it has one.
    fn is_allowed(&self, request: &Request) -> bool {
        let is_own = |host: &str| self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host));
        let is_own_origin = |origin: &str| origin.strip_prefix("http://").is_some_and(is_own);
        request.header("host").is_some_and(is_own) && request.header("origin").is_none_or(is_own_origin)
    }
}

impl RoutedRequest {
    /// Performs the action, which may take as long as loading a model, and returns the response.
    pub fn respond(self, backend: &dyn Backend) -> Response {
        let response = self.action.map_or_else(|error| error, |action| action.perform(backend));
        if self.is_head { response.without_body() } else { response }
    }
}

impl Action {
    fn perform(self, backend: &dyn Backend) -> Response {
        let result = match self {
            Self::File(content_type, text) => return Response::file(content_type, text),
            Self::State => Ok(backend.state()),
            Self::Live => Ok(backend.live()),
            Self::Set(Set { name, value }) => backend.set(&name, value).map(|version| json!({ "version": version })),
            Self::Choose(Choose { what, file }) => backend.choose(what, file.as_deref()).map(|()| json!({})),
            Self::Save(Save { name }) => backend.save(&name).map(|saved| json!({ "saved": saved })),
        };
        result.map_or_else(|error| Response::error(400, &error), |value: Value| Response::json(&value))
    }
}

/// The action of a GET or HEAD request.
fn readable(path: &str) -> Option<Action> {
    match path {
        "/state" => Some(Action::State),
        "/live" => Some(Action::Live),
        _ => FILES.iter().find(|(known, ..)| *known == path).map(|(_, kind, text)| Action::File(kind, text)),
    }
}

fn parse<T: for<'a> Deserialize<'a>>(request: Request, stream: &mut (impl Read + Write)) -> Result<T, Response> {
    let body = request.body(stream)?;
    serde_json::from_str(&body).map_err(|error| Response::error(400, &format!("invalid request body: {error}")))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn checks_host_and_origin() {
        let is_allowed = |port: u16, headers: &str| {
            let text = format!("GET / HTTP/1.1\r\n{headers}\r\n\r\n");
            let request = Request::read(&mut text.as_bytes()).unwrap_or_else(|_| panic!("{text}"));
            Router::new((Ipv4Addr::LOCALHOST, port).into()).is_allowed(&request)
        };
        for (port, headers) in [
            (8077, "Host: 127.0.0.1:8077"),
            (8077, "Host: LocalHost:8077\r\nOrigin: http://localhost:8077"),
            (80, "Host: 127.0.0.1\r\nOrigin: http://127.0.0.1"),
            (80, "Host: localhost"),
            (80, "Host: localhost:80"),
        ] {
            assert!(is_allowed(port, headers), "{port} {headers}");
        }
        for (port, headers) in [
            (8077, "Host: localhost"),
            (8077, "Host: localhost:80"),
            (80, "Host: elsewhere.example"),
            (80, "Host: localhost:8077"),
            (80, "Host: localhost\r\nOrigin: http://elsewhere.example"),
            (80, "Host: localhost\r\nOrigin: https://localhost"),
            (80, "Accept: */*"),
        ] {
            assert!(!is_allowed(port, headers), "{port} {headers}");
        }
    }
}

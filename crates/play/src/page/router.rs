//! Where requests are understood: whether they are meant for this page, what they ask for, and by whom it is answered.

use std::{
    io::{Read, Write},
    net::SocketAddr,
};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Desk, Place, answer::Answer, request::Request};

/// The port that a browser does not name.
const USUAL_PORT: u16 = 80;
/// The page and what belongs to it: path, type, content.
const FILES: [(&str, &str, &str); 3] = [
    ("/", "text/html; charset=utf-8", include_str!("page.html")),
    ("/page.css", "text/css; charset=utf-8", include_str!("page.css")),
    ("/page.js", "text/javascript; charset=utf-8", include_str!("page.js")),
];

/// Understands requests to one address.
pub struct Router {
    /// What this server is called: host and port, and the host alone where browsers leave the port out.
    names: Vec<String>,
}

/// A request that was read, and what is to be done about it.
pub struct RoutedRequest {
    /// Whether only the headers of the answer are wanted.
    is_head: bool,
    action: Result<Action, Answer>,
}

/// What is asked, once it is right.
enum Action {
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
    what: Place,
    /// Nothing only where that is said: what was forgotten takes nothing away.
    #[serde(deserialize_with = "Option::deserialize")]
    file: Option<String>,
}

#[derive(Deserialize)]
struct Save {
    name: String,
}

impl Router {
    pub fn new(address: SocketAddr) -> Self {
        let hosts = ["127.0.0.1", "localhost"];
        let mut names = hosts.map(|host| format!("{host}:{}", address.port())).to_vec();
        if address.port() == USUAL_PORT {
            names.extend(hosts.map(str::to_owned));
        }
        Self { names }
    }

    /// Reads a request.
    pub fn route(&self, stream: &mut (impl Read + Write)) -> RoutedRequest {
        match Request::read(stream) {
            Ok(request) => RoutedRequest { is_head: request.method() == "HEAD", action: self.action(request, stream) },
            Err(refusal) => RoutedRequest { is_head: false, action: Err(refusal) },
        }
    }

    fn action(&self, request: Request, stream: &mut (impl Read + Write)) -> Result<Action, Answer> {
        if !self.is_meant(&request) {
            return Err(Answer::refusal(403, "this page answers only to its own address"));
        }
        match (request.method(), request.path()) {
            ("POST", "/set") => parse(request, stream).map(Action::Set),
            ("POST", "/choose") => parse(request, stream).map(Action::Choose),
            ("POST", "/save") => parse(request, stream).map(Action::Save),
            (_, "/set" | "/choose" | "/save") => Err(Answer::only("POST")),
            (method, path) => match look(path) {
                None => Err(Answer::refusal(404, "there is no such thing here")),
                Some(action) if ["GET", "HEAD"].contains(&method) => Ok(action),
                Some(_) => Err(Answer::only("GET, HEAD")),
            },
        }
    }

    /// Whether it was sent to this server, from this page where it says from where.
    fn is_meant(&self, request: &Request) -> bool {
        let is_ours = |name: &str| self.names.iter().any(|ours| ours.eq_ignore_ascii_case(name));
        let from_us = |origin: &str| origin.strip_prefix("http://").is_some_and(is_ours);
        request.header("host").is_some_and(is_ours) && request.header("origin").is_none_or(from_us)
    }
}

impl RoutedRequest {
    /// The answer, which may take as long as a model takes to load.
    pub fn answer(self, desk: &dyn Desk) -> Answer {
        let answer = self.action.map_or_else(|refusal| refusal, |action| action.answer(desk));
        if self.is_head { answer.bare() } else { answer }
    }
}

impl Action {
    fn answer(self, desk: &dyn Desk) -> Answer {
        let told = match self {
            Self::File(kind, text) => return Answer::file(kind, text),
            Self::State => Ok(desk.state()),
            Self::Live => Ok(desk.live()),
            Self::Set(Set { name, value }) => desk.set(&name, value).map(|version| json!({ "version": version })),
            Self::Choose(Choose { what, file }) => desk.choose(what, file.as_deref()).map(|()| json!({})),
            Self::Save(Save { name }) => desk.save(&name).map(|saved| json!({ "saved": saved })),
        };
        told.map_or_else(|error| Answer::refusal(400, &error), |value: Value| Answer::json(&value))
    }
}

/// What can be looked at.
fn look(path: &str) -> Option<Action> {
    match path {
        "/state" => Some(Action::State),
        "/live" => Some(Action::Live),
        _ => FILES.iter().find(|(known, ..)| *known == path).map(|(_, kind, text)| Action::File(kind, text)),
    }
}

fn parse<T: for<'a> Deserialize<'a>>(request: Request, stream: &mut (impl Read + Write)) -> Result<T, Answer> {
    let body = request.body(stream)?;
    serde_json::from_str(&body).map_err(|error| Answer::refusal(400, &format!("not understood: {error}")))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_page_is_known_by_each_name_that_a_browser_gives_it() {
        let is_meant = |port: u16, headers: &str| {
            let text = format!("GET / HTTP/1.1\r\n{headers}\r\n\r\n");
            let request = Request::read(&mut text.as_bytes()).unwrap_or_else(|_| panic!("{text}"));
            Router::new((Ipv4Addr::LOCALHOST, port).into()).is_meant(&request)
        };
        for (port, headers) in [
            (8077, "Host: 127.0.0.1:8077"),
            (8077, "Host: LocalHost:8077\r\nOrigin: http://localhost:8077"),
            (80, "Host: 127.0.0.1\r\nOrigin: http://127.0.0.1"),
            (80, "Host: localhost"),
            (80, "Host: localhost:80"),
        ] {
            assert!(is_meant(port, headers), "{port} {headers}");
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
            assert!(!is_meant(port, headers), "{port} {headers}");
        }
    }
}

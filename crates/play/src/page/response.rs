//! HTTP responses.

use std::{
    borrow::Cow,
    io::{self, Write},
};

use serde_json::{Value, json};

use super::timed_stream::TIMEOUT;

/// Forbids inline scripts and resources of other servers.
const POLICY: &str = "default-src 'self'; img-src data:; frame-ancestors 'none'; form-action 'none'";

/// An HTTP response.
#[derive(Debug)]
pub struct Response {
    status: u16,
    content_type: &'static str,
    body: Cow<'static, str>,
    /// Further headers: names and values.
    headers: Vec<(&'static str, Cow<'static, str>)>,
    is_head: bool,
}

impl Response {
    /// A file of the page.
    pub fn file(content_type: &'static str, text: &'static str) -> Self {
        Self { status: 200, content_type, body: text.into(), headers: Vec::new(), is_head: false }
    }

    pub fn json(value: &Value) -> Self {
        let body = record::visible::escape_json(value.to_string()).into();
        Self { status: 200, content_type: "application/json", body, headers: Vec::new(), is_head: false }
    }

    /// An error with a message for the user.
    pub fn error(status: u16, message: &str) -> Self {
        Self { status, ..Self::json(&json!({ "error": message })) }
    }

    pub fn method_not_allowed(allow: &'static str) -> Self {
        Self {
            headers: vec![("Allow", allow.into())],
            ..Self::error(405, &format!("this address accepts only {allow}"))
        }
    }

    /// Stores the token in a cookie of the browser, and sends it to the address without the token.
    pub fn enter(cookie: &str, token: &str) -> Self {
        let cookie = format!("{cookie}={token}; Path=/; HttpOnly; SameSite=Lax");
        let headers = vec![("Set-Cookie", cookie.into()), ("Location", "/".into())];
        Self { headers, status: 303, ..Self::file("text/plain; charset=utf-8", "The page is at /.\n") }
    }

    /// The page for a browser whose request contains no valid token.
    pub fn locked() -> Self {
        Self { status: 401, ..Self::file("text/html; charset=utf-8", include_str!("locked.html")) }.challenge()
    }

    /// The error for any other request without a valid token.
    pub fn unauthorized() -> Self {
        Self::error(401, "the link has expired: open the link that punctual prints now").challenge()
    }

    /// Adds the header that HTTP demands for status 401.
    fn challenge(self) -> Self {
        Self { headers: vec![("WWW-Authenticate", "Bearer".into())], ..self }
    }

    /// The same headers without the body, as a HEAD request expects.
    pub fn without_body(self) -> Self {
        Self { is_head: true, ..self }
    }

    pub fn send(&self, to: &mut impl Write) -> io::Result<()> {
        let Self { status, content_type, body, .. } = self;
        let mut text = format!("HTTP/1.1 {status} {}\r\nContent-Type: {content_type}\r\n", reason(*status));
        text += &format!("Content-Length: {}\r\nConnection: close\r\n", body.len());
        text += &format!("Content-Security-Policy: {POLICY}\r\nX-Content-Type-Options: nosniff\r\n");
        text +=
            "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n";
        text.extend(self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")));
        text += "\r\n";
        text += if self.is_head { "" } else { body };
        to.write_all(text.as_bytes())
    }
}

/// The response to an incomplete request: a slow client may still read it.
impl From<io::Error> for Response {
    fn from(_: io::Error) -> Self {
        let seconds = TIMEOUT.as_secs();
        Self::error(408, &format!("the request was not complete after {seconds} s: send it again"))
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        303 => "See Other",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        417 => "Expectation Failed",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "",
    }
}

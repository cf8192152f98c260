//! What is answered, and how it is sent.

use std::{
    borrow::Cow,
    io::{self, Write},
};

use serde_json::{Value, json};

use super::workers::TIMEOUT;

/// Nothing from elsewhere, nothing written into the page.
const POLICY: &str = "default-src 'self'; img-src data:; frame-ancestors 'none'; form-action 'none'";

/// An answer.
#[derive(Debug)]
pub struct Answer {
    status: u16,
    kind: &'static str,
    body: Cow<'static, str>,
    /// The methods that would have been right.
    allow: Option<&'static str>,
    /// Whether only the headers are asked for.
    is_bare: bool,
}

impl Answer {
    /// A file of the page.
    pub fn file(kind: &'static str, text: &'static str) -> Self {
        Self { status: 200, kind, body: text.into(), allow: None, is_bare: false }
    }

    pub fn json(value: &Value) -> Self {
        Self { status: 200, kind: "application/json", body: value.to_string().into(), allow: None, is_bare: false }
    }

    /// What is wrong, in a sentence.
    pub fn refusal(status: u16, error: &str) -> Self {
        Self { status, ..Self::json(&json!({ "error": error })) }
    }

    /// It is there, but not for this method.
    pub fn only(allow: &'static str) -> Self {
        Self { allow: Some(allow), ..Self::refusal(405, &format!("ask for this by {allow}")) }
    }

    /// The same without what follows the headers.
    pub fn bare(self) -> Self {
        Self { is_bare: true, ..self }
    }

    pub fn send(&self, to: &mut impl Write) -> io::Result<()> {
        let Self { status, kind, body, .. } = self;
        let mut text = format!("HTTP/1.1 {status} {}\r\nContent-Type: {kind}\r\n", reason(*status));
        text += &format!("Content-Length: {}\r\nConnection: close\r\n", body.len());
        text += &format!("Content-Security-Policy: {POLICY}\r\nX-Content-Type-Options: nosniff\r\n");
        text += "Cache-Control: no-store\r\n";
        text += &self.allow.map(|allow| format!("Allow: {allow}\r\n")).unwrap_or_default();
        text += "\r\n";
        text += if self.is_bare { "" } else { body };
        to.write_all(text.as_bytes())
    }
}

/// Who stalls may still read why nothing is answered.
impl From<io::Error> for Answer {
    fn from(_: io::Error) -> Self {
        let seconds = TIMEOUT.as_secs();
        Self::refusal(408, &format!("the request did not come whole within {seconds} s: send it again"))
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        411 => "Length Required",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        417 => "Expectation Failed",
        431 => "Request Header Fields Too Large",
        _ => "",
    }
}

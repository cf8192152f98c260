//! A request as it comes: what stands before its body, and the body where one is wanted.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
};

use super::answer::Answer;

/// Most bytes before the body: a browser also sends the cookies that other servers of this machine have given it.
const MAX_HEAD: usize = 16 * 1024;
const MAX_HEADERS: usize = 64;
/// Most bytes of a body.
const MAX_BODY: usize = 1024;

/// A request up to its body.
#[derive(Debug)]
pub struct Request {
    method: String,
    target: String,
    /// By their names in small letters; what came several times stands there as one list.
    headers: BTreeMap<String, String>,
    /// What has come of the body.
    begun: Vec<u8>,
}

impl Request {
    /// Reads one up to its body.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(from: &mut impl Read) -> Result<Self, Answer> {
        let mut bytes = Vec::new();
        let mut part = [0; 2048];
        while bytes.len() < MAX_HEAD {
            let read = from.read(&mut part)?;
            if read == 0 {
                return Err(Answer::refusal(400, "the request breaks off: send all of it"));
            }
            bytes.extend_from_slice(&part[..read]);
            if let Some(request) = Self::parse(&bytes)? {
                return Ok(request);
            }
        }
        Err(Answer::refusal(431, &format!("send at most {MAX_HEAD} bytes of headers")))
    }

    /// The request, once all up to its body is there.
    fn parse(bytes: &[u8]) -> Result<Option<Self>, Answer> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut parsed = httparse::Request::new(&mut headers);
        let (method, target, length) = match parsed.parse(bytes) {
            Ok(httparse::Status::Partial) => return Ok(None),
            Ok(httparse::Status::Complete(length)) => (parsed.method, parsed.path, length),
            Err(httparse::Error::TooManyHeaders) => {
                return Err(Answer::refusal(431, &format!("send at most {MAX_HEADERS} headers")));
            }
            Err(wrong) => return Err(Answer::refusal(400, &format!("this is no request of HTTP/1.1: {wrong}"))),
        };
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let (method, target) = (text(method), text(target));
        Ok(Some(Self { method, target, headers: by_name(parsed.headers), begun: bytes[length..].to_vec() }))
    }

    pub fn method(&self) -> &str {
        &self.method
    }

    /// What is asked for, without what a page may be given on its way.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The value of a header, whose name is in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Reads the body, which must be JSON by its type and short.
    ///
    /// # Errors
    /// What is wrong with it, as far as its headers tell before it has come.
    pub fn body(mut self, stream: &mut (impl Read + Write)) -> Result<String, Answer> {
        if !self.is_json() {
            return Err(Answer::refusal(415, "send application/json"));
        }
        let waits = self.waits()?;
        let length = self.length()?;
        let come = self.begun.len();
        self.begun.resize(length, 0);
        if come < length {
            if waits {
                stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
            }
            stream.read_exact(&mut self.begun[come..])?;
        }
        String::from_utf8(self.begun).map_err(|_| Answer::refusal(400, "send UTF-8"))
    }

    /// Whether JSON is sent, whatever else is told of it.
    fn is_json(&self) -> bool {
        let kind = self.header("content-type").and_then(|kind| kind.split(';').next());
        kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
    }

    /// Whether the body comes only once it is called for.
    fn waits(&self) -> Result<bool, Answer> {
        match self.header("expect") {
            None => Ok(false),
            Some(expected) if expected.eq_ignore_ascii_case("100-continue") => Ok(true),
            Some(_) => Err(Answer::refusal(417, "send it without Expect, or with 100-continue")),
        }
    }

    fn length(&self) -> Result<usize, Answer> {
        let length = self.header("content-length").filter(|_| self.header("transfer-encoding").is_none());
        let length = length.ok_or_else(|| Answer::refusal(411, "send it with a Content-Length, in one piece"))?;
        if !length.bytes().all(|byte| byte.is_ascii_digit()) || length.is_empty() {
            return Err(Answer::refusal(400, "send one number as Content-Length"));
        }
        // What is no number any more is too large.
        let length = length.parse().ok().filter(|length| *length <= MAX_BODY);
        length.ok_or_else(|| Answer::refusal(413, &format!("send at most {MAX_BODY} bytes")))
    }
}

/// The headers by their names; several of one name are one list, as HTTP has it.
fn by_name(headers: &[httparse::Header]) -> BTreeMap<String, String> {
    let mut all: BTreeMap<_, String> = BTreeMap::new();
    for header in headers {
        let value = String::from_utf8_lossy(header.value);
        all.entry(header.name.to_ascii_lowercase())
            .and_modify(|before| *before += &format!(", {value}"))
            .or_insert_with(|| value.into_owned());
    }
    all
}

#[cfg(test)]
mod tests {
    use std::{
        io::{self, Cursor},
        iter,
    };

    use proptest::prelude::*;

    use super::*;

    /// Gives so many bytes at a time.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(to.len()).min(self.0.len());
            let (now, later) = self.0.split_at(length);
            to[..length].copy_from_slice(now);
            self.0 = later;
            Ok(length)
        }
    }

    fn refused(bytes: &[u8]) -> String {
        let mut told = Vec::new();
        Request::read(&mut &*bytes).unwrap_err().send(&mut told).unwrap();
        String::from_utf8(told).unwrap()
    }

    #[test]
    fn it_is_the_same_in_pieces_of_any_length() {
        let text = b"POST /set?x HTTP/1.1\r\nHost: a:1\r\nCookie:  b \r\nCONTENT-type: application/json\r\nContent-Length: 4\r\n\r\ntrueX";
        for length in 1..text.len() {
            let mut pieces = Pieces(text, length);
            let request = Request::read(&mut pieces).unwrap();
            assert_eq!((request.method(), request.path()), ("POST", "/set"));
            assert_eq!((request.header("host"), request.header("cookie")), (Some("a:1"), Some("b")));
            let mut stream = Cursor::new(pieces.0.to_vec());
            assert_eq!(request.body(&mut stream).unwrap(), "true");
        }
    }

    #[test]
    fn what_comes_twice_is_one_list() {
        let request = Request::read(&mut &b"GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n"[..]).unwrap();
        assert_eq!(request.header("host"), Some("a, b"));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        assert!(refused(b"GET / HTTP/2.0\r\n\r\n").starts_with("HTTP/1.1 400 Bad Request\r\n"));
        assert!(refused(b"GET / HTTP/1.1\r\nHost : a\r\n\r\n").starts_with("HTTP/1.1 400"));
        assert!(refused(b"GET / HTTP/1.1\r\nHost: a\r\n").contains("breaks off"));
        let long: Vec<u8> = b"GET / HTTP/1.1\r\nX: ".iter().copied().chain(iter::repeat_n(b'x', MAX_HEAD)).collect();
        assert!(refused(&long).starts_with("HTTP/1.1 431"));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(MAX_HEADERS + 1));
        assert!(refused(many.as_bytes()).starts_with("HTTP/1.1 431"));
    }

    #[test]
    fn a_length_is_one_number() {
        for (status, length) in
            [(400, "-1"), (400, "+4"), (400, "4, 4"), (400, ""), (413, "1025"), (413, &"9".repeat(30))]
        {
            let text = format!("POST / HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
            let mut told = Vec::new();
            let body = Request::read(&mut text.as_bytes()).unwrap().body(&mut Cursor::new(Vec::new()));
            body.unwrap_err().send(&mut told).unwrap();
            assert!(String::from_utf8(told).unwrap().starts_with(&format!("HTTP/1.1 {status}")), "{length}");
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_is_understood_or_refused(bytes: Vec<u8>, length in 1_usize..9) {
            let _ = Request::read(&mut Pieces(&bytes, length));
        }
    }
}

//! Parsing of HTTP requests: the headers first, then the body if one is wanted.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
};

use super::response::Response;

/// Maximum number of bytes before the body. A browser also sends the cookies of other servers on this machine.
const MAX_HEAD: usize = 16 * 1024;
const MAX_HEADERS: usize = 64;
/// Maximum number of bytes of a JSON body.
const MAX_BODY: usize = 1024;
/// Maximum number of bytes of an uploaded file. Published models have less than 10 MiB, cabinets less than 5 MiB.
const MAX_UPLOAD: usize = 32 << 20;

/// A request whose headers have been read.
#[derive(Debug)]
pub struct Request {
    method: String,
    target: String,
    /// Values by lower-case name; repeated headers are joined to one list.
    headers: BTreeMap<String, String>,
    /// The part of the body that was received with the headers.
    body_start: Vec<u8>,
}

impl Request {
    /// Reads a request up to its body.
    ///
    /// # Errors
    /// The response to an invalid request.
    pub fn read(from: &mut impl Read) -> Result<Self, Response> {
        let mut bytes = Vec::new();
        let mut part = [0; 2048];
        while bytes.len() < MAX_HEAD {
            let read = from.read(&mut part)?;
            if read == 0 {
                return Err(Response::error(400, "the request ends before its headers do: send all of it"));
            }
            bytes.extend_from_slice(&part[..read]);
            if let Some(request) = Self::parse(&bytes)? {
                return Ok(request);
            }
        }
        Err(Response::error(431, &format!("the headers have more than {MAX_HEAD} bytes")))
    }

    /// Parses the headers; `None` if they are not complete yet.
    fn parse(bytes: &[u8]) -> Result<Option<Self>, Response> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut parsed = httparse::Request::new(&mut headers);
        let (method, target, length) = match parsed.parse(bytes) {
            Ok(httparse::Status::Partial) => return Ok(None),
            Ok(httparse::Status::Complete(length)) => (parsed.method, parsed.path, length),
            Err(httparse::Error::TooManyHeaders) => {
                return Err(Response::error(431, &format!("the request has more than {MAX_HEADERS} headers")));
            }
            Err(error) => return Err(Response::error(400, &format!("invalid HTTP/1.1 request: {error}"))),
        };
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let (method, target) = (text(method), text(target));
        Ok(Some(Self { method, target, headers: by_name(parsed.headers), body_start: bytes[length..].to_vec() }))
    }

    pub fn method(&self) -> &str {
        &self.method
    }

    /// The path without the query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The value of a field of the query, without percent-encoding.
    pub fn field(&self, name: &str) -> Option<String> {
        let (_, query) = self.target.split_once('?')?;
        let value = query.split('&').find_map(|field| field.strip_prefix(name)?.strip_prefix('='))?;
        Some(percent_decoded(value))
    }

    /// The value of a cookie.
    pub fn cookie(&self, name: &str) -> Option<&str> {
        let cookies = self.header("cookie")?.split([';', ',']);
        cookies
            .filter_map(|cookie| cookie.trim().split_once('='))
            .find(|(other, _)| *other == name)
            .map(|(_, value)| value)
    }

    /// The value of a header; its name must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Reads the body, which must be short and declared as JSON.
    ///
    /// # Errors
    /// The response to an invalid body. Checks the headers before it waits for the body.
    pub fn json(self, stream: &mut (impl Read + Write)) -> Result<String, Response> {
        let bytes = self.body(stream, "application/json", MAX_BODY)?;
        String::from_utf8(bytes).map_err(|_| Response::error(400, "the body must be UTF-8"))
    }

    /// Reads the body, which must be declared as a file.
    ///
    /// # Errors
    /// The response to an invalid body. Checks the headers before it waits for the body.
    pub fn file(self, stream: &mut (impl Read + Write)) -> Result<Vec<u8>, Response> {
        self.body(stream, "application/octet-stream", MAX_UPLOAD)
    }

    fn body(self, stream: &mut (impl Read + Write), kind: &str, max: usize) -> Result<Vec<u8>, Response> {
        if !self.is_kind(kind) {
            return Err(Response::error(415, &format!("the Content-Type must be {kind}")));
        }
        let expects_continue = self.expects_continue()?;
        let length = self.length(max)?;
        let mut body = self.body_start;
        body.truncate(length);
        let missing = length - body.len();
        if missing > 0 {
            if expects_continue {
                stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
            }
            // Memory grows with the received bytes, not with the announced ones.
            let received = stream.take(missing as u64).read_to_end(&mut body)?;
            if received < missing {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
        Ok(body)
    }

    /// True if the content type is this one, with any parameters.
    fn is_kind(&self, wanted: &str) -> bool {
        let kind = self.header("content-type").and_then(|kind| kind.split(';').next());
        kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case(wanted))
    }

    /// True if the client sends the body only after a "100 Continue".
    fn expects_continue(&self) -> Result<bool, Response> {
        match self.header("expect") {
            None => Ok(false),
            Some(expected) if expected.eq_ignore_ascii_case("100-continue") => Ok(true),
            Some(_) => Err(Response::error(417, "the only supported Expect is 100-continue")),
        }
    }

    fn length(&self, max: usize) -> Result<usize, Response> {
        let length = self.header("content-length").filter(|_| self.header("transfer-encoding").is_none());
        let length = length.ok_or_else(|| Response::error(411, "send a Content-Length and no Transfer-Encoding"))?;
        if !length.bytes().all(|byte| byte.is_ascii_digit()) || length.is_empty() {
            return Err(Response::error(400, "the Content-Length must be one number"));
        }
        // A number that does not fit into usize is too large as well.
        let length = length.parse().ok().filter(|length| *length <= max);
        length.ok_or_else(|| Response::error(413, &format!("the body has more than {max} bytes")))
    }
}

/// The text with each `%xx` replaced by its byte. Bytes that are not UTF-8 become U+FFFD.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((plain, after)) = rest.split_once('%') {
        bytes.extend_from_slice(plain.as_bytes());
        let digits = after.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(b'%');
                rest = after;
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The headers by lower-case name; repeated ones are joined with commas, as HTTP specifies.
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
    use std::{io::Cursor, iter};

    use proptest::prelude::*;

    use super::*;

    /// Returns at most this many bytes for each read.
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

    /// The response to an invalid request.
    fn error(bytes: &[u8]) -> String {
        let mut sent = Vec::new();
        Request::read(&mut &*bytes).unwrap_err().send(&mut sent).unwrap();
        String::from_utf8(sent).unwrap()
    }

    #[test]
    fn reads_a_request_in_pieces_of_any_length() {
        let text = b"POST /set?x HTTP/1.1\r\nHost: a:1\r\nCookie:  b \r\nCONTENT-type: application/json\r\nContent-Length: 4\r\n\r\ntrueX";
        for length in 1..text.len() {
            let mut pieces = Pieces(text, length);
            let request = Request::read(&mut pieces).unwrap();
            assert_eq!((request.method(), request.path()), ("POST", "/set"));
            assert_eq!((request.header("host"), request.header("cookie")), (Some("a:1"), Some("b")));
            let mut stream = Cursor::new(pieces.0.to_vec());
            assert_eq!(request.json(&mut stream).unwrap(), "true");
        }
    }

    #[test]
    fn joins_repeated_headers() {
        let request = Request::read(&mut &b"GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n"[..]).unwrap();
        assert_eq!(request.header("host"), Some("a, b"));
    }

    #[test]
    fn reads_fields_of_the_query_and_cookies() {
        let text = "POST /upload?name=a%20b%e2%99%af.nam&x=100%&overwrite=1 HTTP/1.1\r\nCookie: a=1; punctual-80=x; b=\r\n\r\n";
        let request = Request::read(&mut text.as_bytes()).unwrap();
        let field = |name| request.field(name);
        assert_eq!((field("name").as_deref(), field("x").as_deref()), (Some("a b\u{266f}.nam"), Some("100%")));
        assert_eq!((field("overwrite").as_deref(), field("over"), field("y")), (Some("1"), None, None));
        let cookie = |name| request.cookie(name);
        assert_eq!((cookie("punctual-80"), cookie("b"), cookie("punctual")), (Some("x"), Some(""), None));
    }

    #[test]
    fn an_upload_needs_its_type_and_all_its_bytes() {
        let file = |kind: &str, length: usize, sent: &str| {
            let text = format!("POST /upload HTTP/1.1\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n");
            let request = Request::read(&mut text.as_bytes()).unwrap();
            request.file(&mut Cursor::new(sent.as_bytes().to_vec()))
        };
        assert_eq!(file("application/octet-stream", 4, "abcdef").unwrap(), b"abcd");
        let status = |kind, length, sent| {
            let mut answer = Vec::new();
            file(kind, length, sent).unwrap_err().send(&mut answer).unwrap();
            String::from_utf8(answer).unwrap()[9..12].to_owned()
        };
        assert_eq!(status("application/octet-stream", 9, "abcdef"), "408");
        assert_eq!(status("text/plain", 4, "abcd"), "415");
        assert_eq!(status("application/octet-stream", MAX_UPLOAD + 1, ""), "413");
    }

    #[test]
    fn rejects_invalid_requests() {
        assert!(error(b"GET / HTTP/2.0\r\n\r\n").starts_with("HTTP/1.1 400 Bad Request\r\n"));
        assert!(error(b"GET / HTTP/1.1\r\nHost : a\r\n\r\n").starts_with("HTTP/1.1 400"));
        assert!(error(b"GET / HTTP/1.1\r\nHost: a\r\n").contains("ends before its headers do"));
        let long: Vec<u8> = b"GET / HTTP/1.1\r\nX: ".iter().copied().chain(iter::repeat_n(b'x', MAX_HEAD)).collect();
        assert!(error(&long).starts_with("HTTP/1.1 431"));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(MAX_HEADERS + 1));
        assert!(error(many.as_bytes()).starts_with("HTTP/1.1 431"));
    }

    #[test]
    fn rejects_an_invalid_content_length() {
        for (status, length) in
            [(400, "-1"), (400, "+4"), (400, "4, 4"), (400, ""), (413, "1025"), (413, &"9".repeat(30))]
        {
            let text = format!("POST / HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
            let mut sent = Vec::new();
            let body = Request::read(&mut text.as_bytes()).unwrap().json(&mut Cursor::new(Vec::new()));
            body.unwrap_err().send(&mut sent).unwrap();
            assert!(String::from_utf8(sent).unwrap().starts_with(&format!("HTTP/1.1 {status}")), "{length}");
        }
    }

    proptest! {
        #[test]
        fn does_not_panic_on_any_bytes(bytes: Vec<u8>, length in 1_usize..9) {
            let _ = Request::read(&mut Pieces(&bytes, length));
        }
    }
}

//! HTTP requests of any bytes: each gets a response, and only those that name the page as their host reach the backend.
#![no_main]

use std::{
    io::{self, Read, Write},
    net::SocketAddr,
    sync::atomic::{AtomicBool, Ordering},
};

use harmless::check_file;
use libfuzzer_sys::fuzz_target;
use play::page::{self, Access, Act, Backend, Slot, Upload, UploadError};
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let mut wire = Wire { unread: bytes, answer: Vec::new() };
    let backend = CallRecorder::default();
    page::reply(SocketAddr::from(([127, 0, 0, 1], 8077)), &Access::local(), &mut wire, &backend).unwrap();
    let begin = if wire.answer.starts_with(b"HTTP/1.1 100 Continue\r\n\r\n") { 25 } else { 0 };
    assert!(wire.answer[begin..].starts_with(b"HTTP/1.1 "));
    let names_page =
        [&b"127.0.0.1:8077"[..], b"localhost:8077"].iter().any(|name| bytes.windows(14).any(|at| at == *name));
    check_file(&String::from_utf8_lossy(&wire.answer).replace('\r', ""));
    assert!(names_page || !backend.0.load(Ordering::Relaxed));
});

/// A connection whose client has sent all its bytes.
struct Wire<'a> {
    unread: &'a [u8],
    answer: Vec<u8>,
}

impl Read for Wire<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.unread.read(to)
    }
}

impl Write for Wire<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.answer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Records whether any method was called.
#[derive(Default)]
struct CallRecorder(AtomicBool);

impl CallRecorder {
    fn record<T>(&self, answer: T) -> T {
        self.0.store(true, Ordering::Relaxed);
        answer
    }
}

impl Backend for CallRecorder {
    fn state(&self) -> Value {
        self.record(Value::Null)
    }

    fn live(&self) -> Value {
        self.record(Value::Null)
    }

    fn set(&self, _name: &str, value: f32) -> Result<u64, String> {
        assert!(!value.is_nan());
        self.record(Ok(0))
    }

    fn choose(&self, _slot: Slot, _file: Option<&str>) -> Result<(), String> {
        self.record(Ok(()))
    }

    fn save(&self, name: &str) -> Result<String, String> {
        self.record(Ok(name.to_owned()))
    }

    fn act(&self, _act: Act) -> Result<String, String> {
        self.record(Ok(String::new()))
    }

    fn upload(&self, upload: Upload) -> Result<(String, Slot), UploadError> {
        self.record(Ok((upload.name, Slot::Model1)))
    }
}

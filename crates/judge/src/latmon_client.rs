//! A connection with a board that runs latmon.

use std::{
    io::{self, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    time::Duration,
};

use crate::{
    error::JudgeError,
    latmon::{Bulk, Decoder, Message, Request},
};

/// Longest time until the board accepts a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);
/// Longest time until the board accepts a request.
const WRITE_WITHIN: Duration = Duration::from_secs(1);

/// A connection with latmon. It serves one program at a time.
#[derive(Debug)]
pub struct LatmonClient {
    stream: TcpStream,
    /// As on the command line.
    name: String,
    decoder: Decoder,
}

impl LatmonClient {
    /// Connects to the board.
    ///
    /// # Errors
    /// [`JudgeError::Unreachable`].
    pub fn connect(host: &str, port: u16, name: &str) -> Result<Self, JudgeError> {
        let connect = || {
            let mut last = io::Error::from(io::ErrorKind::NotFound);
            for address in (host, port).to_socket_addrs()? {
                match TcpStream::connect_timeout(&address, CONNECT_WITHIN) {
                    Ok(stream) => return Ok(stream),
                    Err(error) => last = error,
                }
            }
            Err(last)
        };
        let set_up = |stream: TcpStream| {
            stream.set_nodelay(true)?;
            stream.set_write_timeout(Some(WRITE_WITHIN))?;
            Ok(stream)
        };
        let stream = connect().and_then(set_up);
        let stream = stream.map_err(|source| JudgeError::Unreachable { judge: name.to_owned(), source })?;
        Ok(Self { stream, name: name.to_owned(), decoder: Decoder::new(0) })
    }

    /// Starts a run. `request` must be valid.
    ///
    /// # Errors
    /// The board is gone.
    pub fn start(&mut self, request: Request) -> Result<(), JudgeError> {
        self.decoder = Decoder::new(request.cells);
        self.send(request)
    }

    /// Asks for the end of the run. The board answers with an empty bulk and the histogram.
    ///
    /// # Errors
    /// The board is gone.
    pub fn stop(&mut self) -> Result<(), JudgeError> {
        self.send(Request::STOP)
    }

    /// The messages that came within `timeout`, after the first of them without a further wait.
    ///
    /// # Errors
    /// The board is gone, or sent a contradiction.
    pub fn messages(&mut self, timeout: Duration) -> Result<Vec<Message>, JudgeError> {
        let mut bytes = [0; 4096];
        self.stream.set_read_timeout(Some(timeout)).map_err(|error| self.gone(error.to_string()))?;
        match self.stream.read(&mut bytes) {
            Ok(0) => return Err(self.gone("it closed the connection".to_owned())),
            Ok(received) => self.decoder.push(&bytes[..received]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(self.gone(error.to_string())),
        }
        let messages: Vec<Message> = std::iter::from_fn(|| self.decoder.take()).collect();
        let wrong = messages.iter().find_map(|message| match message {
            Message::Contradiction(bulk) => Some(in_words(bulk)),
            Message::Bulk(_) | Message::Cells(_) => None,
        });
        match wrong {
            Some(what) => Err(JudgeError::Protocol { judge: self.name.clone(), what }),
            None => Ok(messages),
        }
    }

    fn send(&mut self, request: Request) -> Result<(), JudgeError> {
        self.stream.write_all(&request.encode()).map_err(|error| self.gone(error.to_string()))
    }

    fn gone(&self, why: String) -> JudgeError {
        JudgeError::Gone { judge: self.name.clone(), why }
    }
}

/// A contradiction in words. The bytes of another service, such as a web server, are mostly text.
fn in_words(bulk: &Bulk) -> String {
    let bytes = bulk.encode();
    if bytes.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()) {
        let text = String::from_utf8_lossy(&bytes).split_whitespace().collect::<Vec<_>>().join(" ");
        return format!("the text `{text}`: another service than latmon uses this port");
    }
    let Bulk { sum_ns, min_ns, max_ns, samples, .. } = *bulk;
    // latmus reads signed numbers.
    let (sum_ns, min_ns, max_ns) = (sum_ns.cast_signed(), min_ns.cast_signed(), max_ns.cast_signed());
    format!(
        "times that contradict each other (sum {sum_ns} ns, smallest {min_ns} ns, largest {max_ns} ns, {samples} answers): \
         is it latmon?"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contradictions_are_in_words() {
        let negative =
            Bulk { sum_ns: 24_000, min_ns: (-500_i32).cast_unsigned(), max_ns: 24_798, overruns: 0, samples: 1000 };
        assert_eq!(
            in_words(&negative),
            "times that contradict each other (sum 24000 ns, smallest -500 ns, largest 24798 ns, 1000 answers): is it latmon?"
        );
        let text = Bulk::decode(b"HTTP/1.1 400 Bad Request").unwrap_err();
        assert_eq!(in_words(&text), "the text `HTTP/1.1 400 Bad Request`: another service than latmon uses this port");
    }
}

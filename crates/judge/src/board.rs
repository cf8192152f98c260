//! A connection with the judge of punctual.

use std::time::{Duration, Instant};

use crate::{
    decoder::{Decoder, Item, Reply, with_crc},
    error::JudgeError,
    frame::Frame,
    serial::SerialLine,
    settings::Settings,
};

/// Time after which a command without a reply is sent again, and the number of attempts: see `judge/PROTOCOL.md`.
const REPLY_WITHIN: Duration = Duration::from_secs(1);
const ATTEMPTS: usize = 3;
/// Longest time until a second reply to a command.
const DRAIN: Duration = Duration::from_millis(200);
/// Longest time until the judge has sent a full buffer of 64 KiB at 115200 bit/s, and a reply.
const FRAMES_WITHIN: Duration = Duration::from_secs(8);
/// Longest time that the run of an earlier program takes to end: the longest period of the judge, and its frames.
const OLD_RUN: Duration = Duration::from_secs(12);
/// Time between two attempts to change the settings while an earlier run ends.
const OLD_RUN_CHECK: Duration = Duration::from_millis(20);
/// The reply to `version`, and its part before the number.
const VERSION: &str = "punctual-judge 1";
const VERSION_OF: &str = "punctual-judge ";

/// A connection with the judge.
#[derive(Debug)]
pub struct Board {
    line: SerialLine,
    /// As on the command line.
    name: String,
    decoder: Decoder,
    /// Frames that came before a reply.
    frames: Vec<Frame>,
    /// True if a command was sent again, so that a second reply to it can come.
    needs_drain: bool,
}

impl Board {
    /// Opens the line, ends a run that an earlier program left, and checks the version.
    ///
    /// # Errors
    /// The line cannot be opened, or no judge of this version answers.
    pub fn open(path: &str, baud: u32, name: &str) -> Result<Self, JudgeError> {
        let line = SerialLine::open(path, baud)?;
        let mut board =
            Self { line, name: name.to_owned(), decoder: Decoder::default(), frames: Vec::new(), needs_drain: false };
        // Ends a line that an earlier program left incomplete.
        board.send("\n")?;
        board.exchange("stop").map_err(|error| match error {
            JudgeError::Gone { .. } => JudgeError::Silent { judge: name.to_owned(), path: path.to_owned() },
            other => other,
        })?;
        let reply = board.exchange("version")?;
        check_version(name, reply)?;
        Ok(board)
    }

    /// Makes these settings, and compares the judge's reply with them.
    ///
    /// # Errors
    /// The judge refuses one, or is gone.
    pub fn configure(&mut self, settings: &Settings) -> Result<(), JudgeError> {
        let until = Instant::now() + OLD_RUN;
        for command in settings.commands() {
            while let Err(error) = self.exchange(&command) {
                let is_running = matches!(&error, JudgeError::Refused { reply, .. } if reply.starts_with("running"));
                if !is_running || Instant::now() > until {
                    return Err(error);
                }
                std::thread::sleep(OLD_RUN_CHECK);
            }
        }
        let actual = self.exchange("show")?;
        self.compare(settings, &actual)
    }

    /// Starts a run, after the frames of an earlier one are discarded.
    ///
    /// # Errors
    /// The judge refuses, has other settings, or is gone.
    pub fn start(&mut self, settings: &Settings) -> Result<(), JudgeError> {
        // Sent only once: after a lost reply, a second `start` would be refused.
        self.send(&(with_crc("start") + "\n"))?;
        let actual = self.reply("start", REPLY_WITHIN)?;
        // The judge sends everything in order, so these are of an earlier run.
        self.frames.clear();
        self.compare(settings, &actual)
    }

    /// Asks the judge to end the run. It answers with the end frame.
    ///
    /// # Errors
    /// The judge is gone.
    pub fn stop(&mut self) -> Result<(), JudgeError> {
        self.exchange("stop").map(drop)
    }

    /// The frames that came within `timeout`, after the first of them without a further wait.
    ///
    /// # Errors
    /// The judge is gone.
    pub fn frames(&mut self, timeout: Duration) -> Result<Vec<Frame>, JudgeError> {
        if self.frames.is_empty() {
            self.receive(timeout)?;
        }
        // Replies to commands that were sent twice are of no use.
        while let Some(item) = self.decoder.take() {
            if let Item::Frame(frame) = item {
                self.frames.push(frame);
            }
        }
        Ok(std::mem::take(&mut self.frames))
    }

    /// Bytes of the line that belonged to no valid reply or frame.
    #[must_use]
    pub fn damaged_bytes(&self) -> u64 {
        self.decoder.damaged()
    }

    fn compare(&self, requested: &Settings, actual: &str) -> Result<(), JudgeError> {
        if Settings::parse(actual).as_ref() == Some(requested) {
            return Ok(());
        }
        let (judge, actual, requested) = (self.name.clone(), actual.to_owned(), requested.to_string());
        Err(JudgeError::Settings { judge, actual, requested })
    }

    /// Sends a command, again if its reply is late or damaged; returns the text after `ok`.
    fn exchange(&mut self, command: &str) -> Result<String, JudgeError> {
        let line = with_crc(command) + "\n";
        for _ in 1..ATTEMPTS {
            self.send(&line)?;
            match self.reply(command, REPLY_WITHIN) {
                Err(JudgeError::Gone { .. }) => self.needs_drain = true,
                other => {
                    self.drain()?;
                    return other;
                }
            }
        }
        self.send(&line)?;
        let reply = self.reply(command, REPLY_WITHIN);
        self.drain()?;
        reply
    }

    /// Discards late replies to a command that was sent again, which would be taken for those to the next one.
    fn drain(&mut self) -> Result<(), JudgeError> {
        let until = Instant::now() + DRAIN;
        while std::mem::take(&mut self.needs_drain) {
            while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
                self.receive(left)?;
            }
            while let Some(item) = self.decoder.take() {
                if let Item::Frame(frame) = item {
                    self.frames.push(frame);
                }
            }
        }
        Ok(())
    }

    /// Waits for a reply, and keeps the frames before it: there can be seconds of them at a slow line.
    fn reply(&mut self, command: &str, timeout: Duration) -> Result<String, JudgeError> {
        let latest = Instant::now() + FRAMES_WITHIN;
        let mut until = Instant::now() + timeout;
        loop {
            while let Some(item) = self.decoder.take() {
                match item {
                    Item::Frame(frame) => self.frames.push(frame),
                    Item::Reply(Reply::Ok(text)) => return Ok(text),
                    Item::Reply(Reply::Error(reply)) => {
                        let (judge, command) = (self.name.clone(), command.to_owned());
                        return Err(JudgeError::Refused { judge, command, reply });
                    }
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.gone(format!("no reply to `{command}`")));
            }
            if self.receive(left)? > 0 {
                until = (Instant::now() + timeout).min(latest);
            }
        }
    }

    fn send(&mut self, line: &str) -> Result<(), JudgeError> {
        self.line.write_all(line.as_bytes()).map_err(|error| self.gone(error.to_string()))
    }

    /// Receives bytes; returns their number.
    fn receive(&mut self, timeout: Duration) -> Result<usize, JudgeError> {
        let mut bytes = [0; 4096];
        let received = self.line.read_within(&mut bytes, timeout).map_err(|error| self.gone(error.to_string()))?;
        self.decoder.push(&bytes[..received]);
        Ok(received)
    }

    /// The error of a judge that sent a contradiction.
    pub(crate) fn protocol(&self, what: String) -> JudgeError {
        JudgeError::Protocol { judge: self.name.clone(), what }
    }

    /// The error of a judge that is gone.
    pub(crate) fn gone(&self, why: String) -> JudgeError {
        JudgeError::Gone { judge: self.name.clone(), why }
    }
}

/// Checks the reply to `version`. A judge that replies late sends the reply to another command first.
fn check_version(name: &str, reply: String) -> Result<(), JudgeError> {
    let judge = name.to_owned();
    match reply {
        reply if reply == VERSION => Ok(()),
        reply if reply.starts_with(VERSION_OF) => Err(JudgeError::Version { judge, reply }),
        reply => Err(JudgeError::NoVersion { judge, reply }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_version_needs_another_firmware() {
        let check = |reply: &str| check_version("/dev/ttyACM0", reply.to_owned()).map_err(|error| error.to_string());
        assert_eq!(check("punctual-judge 1"), Ok(()));
        let other = check("punctual-judge 2").unwrap_err();
        assert!(other.contains("answered `punctual-judge 2`") && other.ends_with("flash the judge of this version"));
        let late = check("").unwrap_err();
        assert!(
            late.starts_with("/dev/ttyACM0 answered `version` with an empty reply: it needs more than 1 s"),
            "{late}"
        );
        assert!(check("period=1").unwrap_err().contains("with `period=1`") && !late.contains("flash"));
    }
}

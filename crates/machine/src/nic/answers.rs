//! The source of netlink answers: the kernel, or files below the root folder of a recorded machine.
//!
//! A recorded answer is `netlink/IF/NAME.hex`: all bytes that the kernel sent for that query, in hexadecimal and in the
//! byte order of the machine. White space between bytes and lines that start with `#` are ignored.

use std::{
    collections::HashMap,
    fmt::Write as _,
    io,
    path::{Path, PathBuf},
};

use record::file::{self, FileError};
use rustix::io::Errno;
use serde::Serialize;
use sys::{
    link::{Link, Links},
    netlink::{Answer, AnswerError, Message, Request, Socket},
};

use super::counts::Counts;
use crate::{Root, Unreadable};

/// The result of a query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading<T> {
    /// The answer.
    Known(T),
    /// The driver or the kernel does not support it.
    NotSupported,
    /// The value could not be read, with the reason.
    Unknown(String),
}

impl<T> Reading<T> {
    /// The value, if it is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            _ => None,
        }
    }
}

/// A query about an interface.
#[derive(Debug, Clone, Copy)]
pub(super) struct Query {
    /// Name of its file on a recorded machine.
    pub name: &'static str,
    /// The netlink family and command.
    pub target: Target,
}

/// The netlink family and command of a query.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target {
    /// rtnetlink: the interface.
    Link,
    /// rtnetlink: the queueing disciplines of all interfaces.
    Qdiscs,
    /// Generic family `ethtool`: this command.
    Ethtool(u8),
    /// Generic family `netdev`: the device.
    Device,
    /// Generic family `netdev`: the NAPI instances.
    Napis,
}

const RTM_GETQDISC: u16 = 38;
const ETHTOOL_A_HEADER: u16 = 1;
const ETHTOOL_A_HEADER_DEV_NAME: u16 = 2;
const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_CMD_NAPI_GET: u8 = 11;
const NETDEV_A_IFINDEX: u16 = 1;

/// Answers to queries about interfaces.
#[derive(Debug)]
pub struct Answers {
    from: Source,
    keep: Option<PathBuf>,
}

#[derive(Debug)]
enum Source {
    Kernel { families: HashMap<&'static str, Result<u16, String>> },
    Files(Root),
}

impl Answers {
    /// Answers from the machine below this root: from the kernel, or from its recorded files.
    #[must_use]
    pub fn of(root: &Root) -> Self {
        let from =
            if root.is_system() { Source::Kernel { families: HashMap::new() } } else { Source::Files(root.clone()) };
        Self { from, keep: None }
    }

    /// Writes each answer to a file below `folder`, which can then be the root of a recorded machine.
    #[must_use]
    pub fn keep_in(mut self, folder: PathBuf) -> Self {
        self.keep = Some(folder);
        self
    }

    /// The interface with this name and its counts; `Ok(None)` if it does not exist.
    pub(super) fn link(&mut self, interface: &str) -> Result<Option<(Link, Option<Counts>)>, String> {
        let answer = self.ask(Query { name: "link", target: Target::Link }, interface, 0)?;
        match answer.messages() {
            Ok(messages) => {
                let read = |message: &Message| Some((Link::read(message)?, Counts::read(message)));
                messages.first().and_then(read).map(Some).ok_or_else(not_understood)
            }
            Err(AnswerError::Refused { errno, .. }) if errno == Errno::NODEV.raw_os_error() => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Sends a query and reads the messages of the answer. `read` returns `None` if they are invalid.
    pub(super) fn query<T>(
        &mut self,
        query: Query,
        of: &Link,
        read: impl FnOnce(&[Message]) -> Option<T>,
    ) -> Reading<T> {
        let answer = match self.ask(query, &of.name, of.index) {
            Ok(answer) => answer,
            Err(why) => return Reading::Unknown(why),
        };
        match answer.messages() {
            Ok(messages) => read(&messages).map_or_else(|| Reading::Unknown(not_understood()), Reading::Known),
            Err(AnswerError::Refused { errno, .. }) if errno == Errno::OPNOTSUPP.raw_os_error() => {
                Reading::NotSupported
            }
            Err(error) => Reading::Unknown(error.to_string()),
        }
    }

    fn ask(&mut self, query: Query, interface: &str, index: u32) -> Result<Answer, String> {
        let answer = match &mut self.from {
            Source::Kernel { families } => ask_kernel(families, query, interface, index)?,
            Source::Files(root) => read(root, &path(interface, query.name))?,
        };
        if let Some(folder) = &self.keep {
            write(&folder.join(path(interface, query.name)), query, &answer).map_err(|error| error.to_string())?;
        }
        Ok(answer)
    }
}

/// Adds the interface's name to a request of the family `ethtool`.
pub(super) fn to_interface(request: Request, interface: &str) -> Request {
    request.nested(ETHTOOL_A_HEADER, |header| header.text(ETHTOOL_A_HEADER_DEV_NAME, interface))
}

fn not_understood() -> String {
    "the kernel's answer is not understood".to_owned()
}

fn path(interface: &str, name: &str) -> String {
    format!("netlink/{interface}/{name}.hex")
}

fn ask_kernel(
    families: &mut HashMap<&'static str, Result<u16, String>>,
    query: Query,
    interface: &str,
    index: u32,
) -> Result<Answer, String> {
    let failed = |error: io::Error| error.to_string();
    let mut family = |name: &'static str| {
        let lookup = || match Socket::generic().and_then(|mut socket| socket.family(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(format!("this kernel has no {name} netlink")),
            found => found.map_err(failed),
        };
        families.entry(name).or_insert_with(lookup).clone()
    };
    let request = match query.target {
        Target::Link => Links::question(interface),
        // tcmsg: family and padding; index; handle, parent, info.
        Target::Qdiscs => Request::dump(RTM_GETQDISC).header(&[&[0; 4][..], &index.to_ne_bytes(), &[0; 12]].concat()),
        Target::Ethtool(command) => to_interface(Request::generic(family("ethtool")?, command), interface),
        Target::Device => Request::generic(family("netdev")?, NETDEV_CMD_DEV_GET).u32(NETDEV_A_IFINDEX, index),
        Target::Napis => Request::generic_dump(family("netdev")?, NETDEV_CMD_NAPI_GET).u32(NETDEV_A_IFINDEX, index),
    };
    let socket =
        if matches!(query.target, Target::Link | Target::Qdiscs) { Socket::route() } else { Socket::generic() };
    socket.and_then(|mut socket| socket.ask(&request)).map_err(failed)
}

fn read(root: &Root, path: &str) -> Result<Answer, String> {
    let bytes = root.parsed(path, parse).map_err(|why| match why {
        Unreadable::Absent => format!("/{path} was not recorded"),
        Unreadable::NotUnderstood => format!("/{path} is empty or not hexadecimal"),
        Unreadable::Forbidden | Unreadable::LockedDown | Unreadable::Refused | Unreadable::Failed => {
            format!("/{path} cannot be read")
        }
    })?;
    Ok(Answer::from_bytes(bytes))
}

fn parse(text: &str) -> Option<Vec<u8>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let digits: Vec<u8> = lines
        .flat_map(str::chars)
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect::<Option<_>>()?;
    let pairs = digits.chunks_exact(2);
    pairs.remainder().is_empty().then(|| digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

fn write(path: &Path, query: Query, answer: &Answer) -> Result<(), FileError> {
    let folder = path.parent().unwrap_or(path);
    file::create_folder(folder).map_err(|source| FileError::Write { path: folder.to_owned(), source })?;
    file::write_atomic(path, in_hex(&format!("{:?}", query.target), answer).as_bytes())
}

/// The contents of a file for an answer.
fn in_hex(title: &str, answer: &Answer) -> String {
    let mut text = format!("# {title}\n");
    for line in answer.bytes().chunks(16) {
        for byte in line {
            let _ = write!(text, "{byte:02x} ");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn reads_the_answers_that_it_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let query = Query { name: "rings", target: Target::Ethtool(15) };
        let answer = Answer::of(&[Request::generic(21, 16).u32(6, 256)]);
        write(&folder.path().join(path("eth0", "rings")), query, &answer).unwrap();
        let mut answers = Answers::of(&Root::at(folder.path()));
        assert_eq!(answers.ask(query, "eth0", 2), Ok(answer));
        assert!(answers.ask(query, "eth1", 2).unwrap_err().contains("not recorded"));
        fs::write(folder.path().join(path("eth0", "rings")), "# odd\n0 1 2\n").unwrap();
        assert!(answers.ask(query, "eth0", 2).unwrap_err().contains("not hexadecimal"));
    }

    #[test]
    fn parses_hexadecimal_with_comments() {
        assert_eq!(parse("# a title\n01 aB\ncd"), Some(vec![1, 0xab, 0xcd]));
        assert_eq!((parse("0"), parse("0g"), parse("")), (None, None, Some(Vec::new())));
    }

    /// Tests that need root; `tools/test` reports that it skips them without root.
    mod rights {
        use super::*;
        use std::os::unix::fs::{PermissionsExt, lchown, symlink};

        #[test]
        fn writes_through_no_link_of_another_user() {
            let shared = tempfile::tempdir().unwrap();
            fs::set_permissions(shared.path(), fs::Permissions::from_mode(0o1777)).unwrap();
            let [kept, victim] = ["kept", "victim"].map(|name| shared.path().join(name));
            fs::create_dir(&victim).unwrap();
            symlink(&victim, &kept).unwrap();
            lchown(&kept, Some(4711), None).unwrap();
            let query = Query { name: "rings", target: Target::Ethtool(15) };
            let answer = Answer::of(&[Request::generic(21, 16).u32(6, 256)]);
            let error = write(&kept.join(path("eth0", "rings")), query, &answer).unwrap_err().to_string();
            assert!(error.contains("symbolic link of another user"), "{error}");
            assert_eq!(fs::read_dir(&victim).unwrap().count(), 0);
        }
    }
}

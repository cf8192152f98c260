//! Access to the page: the token that a request must contain, and the names of this machine.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    net::IpAddr,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
    sync::Mutex,
};

use constant_time_eq::constant_time_eq;
use record::file::{is_of_this_user, read_regular};
use rustix::{
    rand::{GetRandomFlags, getrandom},
    system::uname,
};

/// Random bits of a token, as bytes.
const TOKEN_BYTES: usize = 16;
/// Maximum length of a file that contains a token, bytes.
const MAX_FILE: u64 = 4096;
/// Permission bits of the group and of others.
const OF_OTHERS: u32 = 0o077;

/// The rules for requests to one page.
#[derive(Debug)]
pub struct Access {
    /// The token that every request must contain; `None` for a page that only this machine can reach.
    pub(super) token: Option<Token>,
    /// Host names of this machine that a request may use.
    pub(super) names: Vec<String>,
    /// Held while a file is received, so that uploads cannot fill the memory together.
    pub(super) uploading: Mutex<()>,
}

impl Access {
    /// Access without a token, for a page on the loopback interface.
    #[must_use]
    pub fn local() -> Self {
        Self { token: None, names: Vec::new(), uploading: Mutex::default() }
    }

    /// Access for a page at this address: with the token of a file, which is created if it does not exist, or with a
    /// new random one. A page that only this machine can reach has a token only if a file is given.
    ///
    /// # Errors
    /// If the kernel has no random numbers, or the file cannot be used.
    pub(super) fn for_address(address: IpAddr, token_file: Option<&Path>) -> io::Result<Self> {
        let is_local = address.to_canonical().is_loopback();
        let token = match token_file {
            Some(path) => Some(Token::of_file(path)?),
            None if is_local => None,
            None => Some(Token::random()?),
        };
        let host = uname().nodename().to_string_lossy().into_owned();
        let names = if is_local { Vec::new() } else { vec![format!("{host}.local"), host] };
        Ok(Self { token, names, uploading: Mutex::default() })
    }

    /// Access with this token, for tests.
    #[cfg(test)]
    pub(super) fn with_token(token: &str) -> Self {
        Self { token: Some(Token(token.to_owned())), ..Self::local() }
    }
}

/// A secret that the link to the page contains.
pub(super) struct Token(String);

impl Token {
    /// A token of 128 random bits of the kernel.
    fn random() -> io::Result<Self> {
        let mut bytes = [0; TOKEN_BYTES];
        let count = getrandom(&mut bytes, GetRandomFlags::empty())?;
        if count != bytes.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The token of a file that only this user can read. A missing file is created with a new token.
    fn of_file(path: &Path) -> io::Result<Self> {
        let invalid = |text: &str| io::Error::other(text.to_owned());
        let bytes = match read_regular(path, MAX_FILE) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let token = Self::random()?;
                let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
                file.write_all(format!("{}\n", token.0).as_bytes())?;
                return Ok(token);
            }
            Err(error) => return Err(error),
        };
        let metadata = path.metadata()?;
        if !is_of_this_user(&metadata) || metadata.mode() & OF_OTHERS != 0 {
            return Err(invalid("other users can read it; run `chmod 600` on it, or delete it for a new token"));
        }
        let token = String::from_utf8(bytes).unwrap_or_default().trim().to_owned();
        let is_valid = token.len() == 2 * TOKEN_BYTES && token.bytes().all(|digit| digit.is_ascii_hexdigit());
        if is_valid {
            Ok(Self(token))
        } else {
            Err(invalid("it contains no token of 32 hexadecimal digits; delete it for a new one"))
        }
    }

    /// True if `given` is the token. The time does not depend on how much of it is right.
    pub fn is(&self, given: &str) -> bool {
        constant_time_eq(self.0.as_bytes(), given.as_bytes())
    }

    /// The token as text, for the link and the cookie.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        net::{Ipv4Addr, Ipv6Addr},
        os::unix::fs::PermissionsExt,
    };

    use super::*;

    #[test]
    fn only_loopback_addresses_need_no_token() {
        let has_token = |address: IpAddr| Access::for_address(address, None).unwrap().token.is_some();
        assert!(!has_token(Ipv4Addr::LOCALHOST.into()) && !has_token(Ipv6Addr::LOCALHOST.into()));
        assert!(!has_token("127.3.2.1".parse().unwrap()) && !has_token("::ffff:127.0.0.1".parse().unwrap()));
        assert!(has_token(Ipv4Addr::UNSPECIFIED.into()) && has_token(Ipv6Addr::UNSPECIFIED.into()));
        assert!(has_token("192.168.1.5".parse().unwrap()));
    }

    #[test]
    fn a_file_keeps_the_token() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let read = || Access::for_address(Ipv4Addr::LOCALHOST.into(), Some(&path));
        let token = || read().unwrap().token.unwrap().as_str().to_owned();
        let first = token();
        assert_eq!((first.len(), token()), (32, first));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let error = || read().unwrap_err().to_string();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        assert!(error().contains("chmod 600"), "{}", error());
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        for text in ["", "0123", "not hexadecimal, but 32 letters!"] {
            fs::write(&path, text).unwrap();
            assert!(error().contains("delete it for a new one"), "{text}: {}", error());
        }
    }

    #[test]
    fn tokens_are_random_and_hidden() {
        let tokens = [0; 3].map(|_| Token::random().unwrap());
        assert!(
            tokens.iter().all(|token| token.as_str().len() == 32 && !format!("{token:?}").contains(token.as_str()))
        );
        assert!(
            tokens[0].is(tokens[0].as_str()) && !tokens[0].is(tokens[1].as_str()) && !tokens[1].is(tokens[2].as_str())
        );
        assert!(!tokens[0].is("") && !tokens[0].is(&tokens[0].as_str()[1..]));
    }
}

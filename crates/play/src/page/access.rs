//! Access to the page: the token that a request must contain, and the names of this machine.

use std::{io, net::IpAddr, sync::Mutex};

use constant_time_eq::constant_time_eq;
use rustix::{
    rand::{GetRandomFlags, getrandom},
    system::uname,
};

/// Random bits of a token, as bytes.
const TOKEN_BYTES: usize = 16;

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

    /// Access for a page at this address: with a new random token, unless only this machine can reach the address.
    ///
    /// # Errors
    /// If the kernel has no random numbers.
    pub(super) fn for_address(address: IpAddr) -> io::Result<Self> {
        if address.to_canonical().is_loopback() {
            return Ok(Self::local());
        }
        let host = uname().nodename().to_string_lossy().into_owned();
        let names = vec![format!("{host}.local"), host];
        Ok(Self { token: Some(Token::random()?), names, uploading: Mutex::default() })
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
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    #[test]
    fn only_loopback_addresses_need_no_token() {
        let has_token = |address: IpAddr| Access::for_address(address).unwrap().token.is_some();
        assert!(!has_token(Ipv4Addr::LOCALHOST.into()) && !has_token(Ipv6Addr::LOCALHOST.into()));
        assert!(!has_token("127.3.2.1".parse().unwrap()) && !has_token("::ffff:127.0.0.1".parse().unwrap()));
        assert!(has_token(Ipv4Addr::UNSPECIFIED.into()) && has_token(Ipv6Addr::UNSPECIFIED.into()));
        assert!(has_token("192.168.1.5".parse().unwrap()));
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

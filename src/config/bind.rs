//! The address at which the HTTP interface listens.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use super::types::{Accepts, by_text};

/// An address and a port, or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bind {
    /// There is no HTTP interface.
    Off,
    /// The HTTP interface listens at this address.
    At(SocketAddr),
}

impl Bind {
    /// Whether other hosts may be able to connect to this address. They cannot connect to an address of
    /// the loopback network. Names are not accepted, because a name could stand for any address.
    pub fn is_exposed(self) -> bool {
        match self {
            Self::Off => false,
            Self::At(address) => !address.ip().to_canonical().is_loopback(),
        }
    }
}

impl FromStr for Bind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "off" => Ok(Self::Off),
            text => text.parse().map(Self::At).map_err(|_| "it is no address with a port".into()),
        }
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::At(address) => address.fmt(f),
        }
    }
}

impl Accepts for Bind {
    fn accepts() -> String {
        "an IP address with a port (127.0.0.1:8917, [::1]:8917), or off".into()
    }
}

by_text!(Bind);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_not_exposed() {
        for (text, exposed) in [
            ("off", false),
            ("127.0.0.1:0", false),
            ("127.9.9.9:80", false),
            ("[::1]:80", false),
            ("[::ffff:127.0.0.1]:80", false),
            ("0.0.0.0:80", true),
            ("[::]:80", true),
            ("10.0.0.1:80", true),
            ("[::ffff:10.0.0.1]:80", true),
        ] {
            assert_eq!(text.parse::<Bind>().map(Bind::is_exposed), Ok(exposed), "{text}");
        }
        for text in ["", "localhost:80", "127.0.0.1", ":80", "127.0.0.1:65536"] {
            assert!(text.parse::<Bind>().is_err(), "{text}");
        }
    }
}

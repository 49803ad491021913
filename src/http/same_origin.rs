//! Refuses requests that a web page sent, where no tokens are configured. Without tokens, whoever
//! can connect to the port may do everything, and a browser on the same host can connect for any
//! page that it shows. Such requests are recognised by headers that a page cannot keep its browser
//! from sending.

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderValue};

use super::failure::Failure;
use crate::explicit::problem::Problem;

/// Refuses a request with more than one Host header. A proxy in front of tailrace, or a check here,
/// may use another of them than later code.
///
/// # Errors
/// 400 `bad_request`.
pub fn refuse_two_hosts(headers: &HeaderMap) -> Result<(), Failure> {
    match headers.get_all(HOST).iter().nth(1) {
        None => Ok(()),
        Some(_) => {
            let detail = "the request has more than one Host header".to_owned();
            Err(Failure::Problem(Problem::BadRequest(detail)))
        }
    }
}

/// Refuses a request that a web page sent, and a request to a host name that is not this host's own
/// (a page can reach this host by DNS rebinding).
///
/// # Errors
/// [`Failure::Forbidden`].
pub fn refuse_pages(headers: &HeaderMap) -> Result<(), Failure> {
    if headers.contains_key(ORIGIN) || headers.contains_key("sec-fetch-site") {
        return Err(Failure::Forbidden("without tokens, pages of browsers are not served"));
    }
    let host = headers.get(HOST).map_or(Ok(""), HeaderValue::to_str).unwrap_or("?");
    if is_own(host) {
        Ok(())
    } else {
        Err(Failure::Forbidden("without tokens, the host is an address or localhost"))
    }
}

fn is_own(host: &str) -> bool {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    host.is_empty()
        || name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::Ipv4Addr>().is_ok()
        || bare.is_some_and(|name| name.parse::<std::net::Ipv6Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        for own in ["", "localhost", "LocalHost:80", "127.0.0.1:8917", "[::1]:80", "[::1]"] {
            assert!(is_own(own), "{own}");
        }
        for other in [
            "evil.example",
            "evil.example:80",
            "localhost.evil.example",
            "127.0.0.1.nip.io",
            "?",
            "::1",
        ] {
            assert!(!is_own(other), "{other}");
        }
    }
}

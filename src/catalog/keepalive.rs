//! How either end of a session's connection notices that the network fell silent.
//!
//! An end that hears nothing for [`IDLE`] asks whether the other one is there, [`COUNT`] times in
//! [`INTERVAL`]s, and one whose bytes are not taken waits for [`USER_TIMEOUT`]: either gives a
//! connection up after a minute. It also keeps a firewall from forgetting a connection that rests. The
//! server is told so by a setting of the session. Our own end is told here; the driver gives nobody its
//! socket, so it is looked for among those of the process. That each answer is waited for with a limit
//! does not depend on it (see [`super::session`]).

use std::time::Duration;

use sqlx::postgres::PgConnectOptions;

/// An end that hears nothing for so long asks.
pub const IDLE: Duration = Duration::from_secs(30);
/// From one question to the next.
pub const INTERVAL: Duration = Duration::from_secs(10);
/// So many questions go unanswered before a connection is given up.
pub const COUNT: u32 = 3;
/// The longest that what was sent may go unacknowledged.
pub const USER_TIMEOUT: Duration = Duration::from_secs(60);

/// Sets all of it on every connection of this process to the port of the database, of which one was just
/// opened; again where it is set. What cannot be set is told for whoever debugs, and left. Other systems
/// than Linux do without.
pub fn keep_alive(database: &PgConnectOptions) {
    if database.get_socket().is_some() {
        return;
    }
    #[cfg(target_os = "linux")]
    if let Err(error) = linux::keep_alive(database.get_port()) {
        tracing::debug!(%error, "a connection has the keepalives of the system");
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::net::SocketAddr;
    use std::os::fd::{AsFd, BorrowedFd};

    use rustix::net::{getpeername, sockopt};

    use super::{COUNT, IDLE, INTERVAL, USER_TIMEOUT};

    pub fn keep_alive(port: u16) -> std::io::Result<()> {
        for entry in std::fs::read_dir("/proc/self/fd")? {
            let Some(number) = entry?.file_name().to_str().and_then(|name| name.parse().ok())
            else {
                continue;
            };
            // SAFETY: nothing is read, written or closed through it. The number is not -1, for it is that
            // of a file that was open. Its owner may close it meanwhile: then the calls below fail, or meet
            // another socket of ours that the number was given to, which the options do no harm to.
            let socket = unsafe { BorrowedFd::borrow_raw(number) };
            // Of what is no socket, or has no peer, this is an error.
            let peer = getpeername(socket).ok().flatten().map(SocketAddr::try_from);
            if matches!(peer, Some(Ok(peer)) if peer.port() == port) {
                set(socket)?;
            }
        }
        Ok(())
    }

    pub fn set(socket: impl AsFd) -> std::io::Result<()> {
        let socket = socket.as_fd();
        sockopt::set_socket_keepalive(socket, true)?;
        sockopt::set_tcp_keepidle(socket, IDLE)?;
        sockopt::set_tcp_keepintvl(socket, INTERVAL)?;
        sockopt::set_tcp_keepcnt(socket, COUNT)?;
        let timeout = u32::try_from(USER_TIMEOUT.as_millis()).unwrap_or(u32::MAX);
        Ok(sockopt::set_tcp_user_timeout(socket, timeout)?)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    use rustix::net::sockopt;

    use super::*;

    #[test]
    fn connections_to_the_port_have_it_and_no_others() -> std::io::Result<()> {
        let (database, other) =
            (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
        let to_database = TcpStream::connect(database.local_addr()?)?;
        let (at_database, _) = database.accept()?;
        let elsewhere = TcpStream::connect(other.local_addr()?)?;
        let _no_tcp = UnixStream::pair()?;
        for _ in 0..2 {
            linux::keep_alive(database.local_addr()?.port())?;
            assert!(sockopt::socket_keepalive(&to_database)?);
            assert_eq!(sockopt::tcp_keepidle(&to_database)?, Duration::from_secs(30));
            assert_eq!(sockopt::tcp_keepintvl(&to_database)?, Duration::from_secs(10));
            assert_eq!(sockopt::tcp_keepcnt(&to_database)?, 3);
            assert_eq!(sockopt::tcp_user_timeout(&to_database)?, 60_000);
        }
        for untouched in [&at_database, &elsewhere] {
            assert!(!sockopt::socket_keepalive(untouched)?);
            assert_eq!(sockopt::tcp_user_timeout(untouched)?, 0);
        }
        Ok(())
    }
}

//! Makes a server end when the process that started it ends.

use std::io::Write;
use std::process::{Child, ChildStdin};

use anyhow::Result;

use super::StopMode;

/// The shell that runs the server, and the pipe whose end is the server's end.
#[derive(Debug)]
pub struct Supervisor {
    pub child: Child,
    pub pipe: Option<ChildStdin>,
}

impl Supervisor {
    /// Blocks until the server has ended.
    pub fn stop(mut self, mode: StopMode) -> Result<()> {
        if let Some(mut pipe) = self.pipe.take() {
            // A server that has ended by itself closed the pipe, and is as stopped as asked.
            let _ = writeln!(pipe, "{}", mode.signal());
        }
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _ = self.child.wait();
    }
}

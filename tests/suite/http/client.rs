//! A client that sends exactly the bytes that a test gives it, one by one where a test needs that.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    /// The value of a header that is there once.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        let (value, None) = (found.next()?, found.next()) else { return None };
        Some(&value.1)
    }

    pub fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.body).with_context(|| format!("{self:?}"))
    }

    /// Status and body, as most tests compare them.
    pub fn told(&self) -> (u16, &str) {
        (self.status, &self.body)
    }

    /// Reads one answer whose length its head says.
    pub async fn read(stream: &mut TcpStream) -> Result<Self> {
        Self::read_after(stream, "GET").await
    }

    /// As [`Self::read`]; what answers a HEAD has a length and no body.
    async fn read_after(stream: &mut TcpStream, method: &str) -> Result<Self> {
        let mut bytes = Vec::new();
        let head = loop {
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            if stream.read_buf(&mut bytes).await? == 0 {
                bail!("closed after {:?}", String::from_utf8_lossy(&bytes));
            }
        };
        let text = String::from_utf8(bytes[..head].to_vec())?;
        let mut lines = text.split("\r\n");
        let status = lines.next().context("a status line")?;
        let status = status.split(' ').nth(1).context("a status")?.parse()?;
        let headers: Vec<_> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let mut answer = Answer { status, headers, body: String::new() };
        let length: usize = match method {
            "HEAD" => 0,
            _ => answer.header("content-length").unwrap_or("0").parse()?,
        };
        let mut body = bytes.split_off(head + 4);
        while body.len() < length {
            if stream.read_buf(&mut body).await? == 0 {
                bail!("closed in the body of {answer:?}");
            }
        }
        answer.body = String::from_utf8(body)?;
        Ok(answer)
    }
}

/// A client of one server.
#[derive(Debug, Clone)]
pub struct Client {
    pub address: SocketAddr,
    pub headers: Vec<(String, String)>,
}

impl Client {
    /// As this client, with one more header.
    pub fn with(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    /// As this client, with this token.
    pub fn token(&self, token: &str) -> Self {
        self.with("authorization", &format!("Bearer {token}"))
    }

    pub async fn connect(&self) -> Result<TcpStream> {
        Ok(TcpStream::connect(self.address).await?)
    }

    /// The head of a request with a body of this length.
    pub fn head(&self, method: &str, path: &str, length: usize) -> String {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.address);
        if length > 0 {
            head.push_str(&format!("content-length: {length}\r\n"));
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        head
    }

    pub async fn send(&self, method: &str, path: &str, body: &[u8]) -> Result<Answer> {
        let mut stream = self.connect().await?;
        stream.write_all(self.head(method, path, body.len()).as_bytes()).await?;
        stream.write_all(body).await?;
        Answer::read_after(&mut stream, method).await
    }

    pub async fn get(&self, path: &str) -> Result<Answer> {
        self.send("GET", path, b"").await
    }

    /// Sends a body of JSON.
    pub async fn json(&self, method: &str, path: &str, body: &str) -> Result<Answer> {
        self.with("content-type", "application/json").send(method, path, body.as_bytes()).await
    }
}

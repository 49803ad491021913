//! The open connections, and which of them is closed for a new one where their limit is reached:
//! the one that has waited longest for its client. A connection with a request in flight is never
//! closed.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The connections of a server.
pub struct Connections {
    most: usize,
    known: Mutex<Known>,
    /// There is room, or a connection that could give way.
    changed: Notify,
}

#[derive(Default)]
struct Known {
    /// How many there are, without those that gave way.
    count: usize,
    /// The number of the next one that begins to wait.
    next: u64,
    /// Those that wait for their clients, the longest first, and how each learns that it gives way.
    waiting: BTreeMap<u64, CancellationToken>,
}

/// One connection. It counts until it is dropped, or gives way to a new one.
///
/// A connection waits for its client until the head of a request is complete: from the first moment in which no
/// byte of the client is left to read, or from the end of an answer. It waits again while the body of that
/// request arrives. No work has begun then, so only the client's time is lost. Otherwise a request is in flight,
/// until the operating system has taken the last byte of the answer.
pub struct Connection {
    connections: Arc<Connections>,
    place: Mutex<Place>,
    gives_way: CancellationToken,
}

/// What a connection is at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It is new, and what its client has sent by now was not read yet.
    New,
    /// It waits for its client, and has this number among those that do.
    Waits(u64),
    /// A request is in flight.
    Works,
    /// The answer is made, and may not be with the system yet.
    Answers,
    /// It gave way to another one.
    GaveWay,
}

impl Connections {
    /// At most so many at once.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Connections { most, known: Mutex::default(), changed: Notify::new() })
    }

    /// Admits a connection, once there is room. Where the limit is reached, the one that has waited longest for
    /// its client gives way.
    pub async fn admit(self: &Arc<Self>) -> Arc<Connection> {
        loop {
            if let Some(connection) = self.admit_now() {
                return connection;
            }
            self.changed.notified().await;
        }
    }

    fn admit_now(self: &Arc<Self>) -> Option<Arc<Connection>> {
        let mut known = self.known();
        if known.count < self.most {
            known.count += 1;
        } else {
            // The new one counts in its place.
            let (_, gives_way) = known.waiting.pop_first()?;
            gives_way.cancel();
        }
        Some(Arc::new(Connection {
            connections: self.clone(),
            place: Mutex::new(Place::New),
            gives_way: CancellationToken::new(),
        }))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn waits(&mut self, gives_way: &CancellationToken) -> u64 {
        let number = self.next;
        self.next += 1;
        self.waiting.insert(number, gives_way.clone());
        number
    }
}

impl Connection {
    /// Returns once this connection has given way to another one.
    pub async fn gives_way(&self) {
        self.gives_way.cancelled().await;
    }

    /// From now on it waits for its client.
    pub fn waits(&self) {
        self.begins_to_wait(&mut self.place());
    }

    /// All was read that is there to be read.
    pub fn has_read(&self) {
        let mut place = self.place();
        if *place == Place::New {
            self.begins_to_wait(&mut place);
        }
    }

    /// From now on a request is in flight; false if it gave way before. That is decided under the lock under
    /// which a connection is taken: a request whose connection was taken is not carried out.
    pub fn works(&self) -> bool {
        let mut place = self.place();
        *place = match *place {
            Place::Waits(number) => match self.connections.known().waiting.remove(&number) {
                Some(_) => Place::Works,
                None => Place::GaveWay,
            },
            // The next request may be there before the last answer is with the system.
            Place::New | Place::Answers => Place::Works,
            other => other,
        };
        *place != Place::GaveWay
    }

    /// A request in flight, until what is given is dropped; nothing if this connection gave way.
    pub fn flight(self: &Arc<Self>) -> Option<Flight> {
        self.works().then(|| Flight(self.clone()))
    }

    /// What was written is with the system.
    pub fn flushed(&self) {
        let mut place = self.place();
        if *place == Place::Answers {
            self.begins_to_wait(&mut place);
        }
    }

    fn begins_to_wait(&self, place: &mut Place) {
        if matches!(place, Place::New | Place::Works | Place::Answers) {
            *place = Place::Waits(self.connections.known().waits(&self.gives_way));
            self.connections.changed.notify_one();
        }
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let place = *self.place();
        let mut known = self.connections.known();
        let counts = match place {
            Place::Waits(number) => known.waiting.remove(&number).is_some(),
            Place::New | Place::Works | Place::Answers => true,
            Place::GaveWay => false,
        };
        if counts {
            known.count = known.count.saturating_sub(1);
            drop(known);
            self.connections.changed.notify_one();
        }
    }
}

/// A request in flight.
pub struct Flight(Arc<Connection>);

impl Drop for Flight {
    fn drop(&mut self) {
        let mut place = self.0.place();
        if *place == Place::Works {
            *place = Place::Answers;
        }
    }
}

/// The body of an answer: its request is in flight until all of it is taken.
pub struct Answer {
    body: Body,
    _flight: Flight,
}

impl Answer {
    pub fn new(body: Body, flight: Flight) -> Self {
        Answer { body, _flight: flight }
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn is_taken(connection: &Connection) -> bool {
        connection.gives_way().now_or_never().is_some()
    }

    /// One whose client says nothing.
    async fn silent(connections: &Arc<Connections>) -> Arc<Connection> {
        let connection = connections.admit().await;
        connection.has_read();
        connection
    }

    #[tokio::test]
    async fn the_one_that_has_waited_longest_gives_way() {
        let connections = Connections::new(3);
        let first = silent(&connections).await;
        let second = silent(&connections).await;
        let third = silent(&connections).await;
        let flight = first.flight().expect("it is there");
        let fourth = silent(&connections).await;
        assert_eq!([&first, &second, &third].map(|one| is_taken(one)), [false, true, false]);
        assert!(second.flight().is_none(), "nothing is begun for it any more");

        // An answer is in flight until it is flushed; then its connection has waited for the least time.
        drop(flight);
        let fifth = silent(&connections).await;
        assert!(is_taken(&third) && !is_taken(&first));
        let _flight = fourth.flight().expect("it is there");
        first.flushed();
        let sixth = silent(&connections).await;
        assert!(is_taken(&fifth) && !is_taken(&first));
        let _seventh = connections.admit().await;
        assert!(is_taken(&first) && !is_taken(&sixth));
    }

    #[tokio::test]
    async fn where_every_one_works_a_new_one_waits() {
        let connections = Connections::new(2);
        let (first, second) = (connections.admit().await, connections.admit().await);
        // What they have sent was not read yet.
        assert!(connections.admit().now_or_never().is_none());
        let flights = (first.flight(), second.flight());
        assert!(connections.admit().now_or_never().is_none());
        // A body that comes is waited for.
        second.waits();
        let third = connections.admit().now_or_never().expect("one waits for its client");
        assert!(is_taken(&second) && !second.works());
        drop((second, third));
        let third = connections.admit().now_or_never().expect("one is gone");
        let _flight = third.flight();
        assert!(connections.admit().now_or_never().is_none());
        drop((flights, first));
        assert!(connections.admit().now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_request_before_the_last_answer_is_flushed_is_in_flight() {
        let connections = Connections::new(1);
        let first = silent(&connections).await;
        drop(first.flight().expect("it is there"));
        let flight = first.flight().expect("it is there");
        first.flushed();
        assert!(connections.admit().now_or_never().is_none() && !is_taken(&first));
        drop(flight);
        first.flushed();
        assert!(connections.admit().now_or_never().is_some());
    }
}

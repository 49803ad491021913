use super::*;

const PATIENCE: Duration = Duration::from_secs(60);

/// What the sink does with a write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    /// Takes all of it.
    Takes,
    /// Takes nothing, with an error.
    Fails,
    /// Takes two bytes, then fails.
    Breaks,
    /// Does not return until it is told to do something else.
    Stands,
}

struct State {
    does: Does,
    written: String,
}

#[derive(Clone)]
struct Fake(Arc<(Mutex<State>, Condvar)>);

impl Fake {
    fn does(&self, does: Does) {
        self.0.0.lock().expect("no panic").does = does;
        self.0.1.notify_all();
    }

    fn written(&self) -> String {
        self.0.0.lock().expect("no panic").written.clone()
    }
}

impl Write for Fake {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let state = self.0.0.lock().expect("no panic");
        let stands = |state: &mut State| state.does == Does::Stands;
        let mut state = self.0.1.wait_while(state, stands).expect("no panic");
        let length = match state.does {
            Does::Takes | Does::Stands => bytes.len(),
            Does::Fails => return Err(ErrorKind::StorageFull.into()),
            Does::Breaks => 2,
        };
        if state.does == Does::Breaks {
            state.does = Does::Fails;
        }
        state.written.push_str(&String::from_utf8_lossy(&bytes[..length]));
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn lines(does: Does, limit: usize) -> (Lines, Fake) {
    let state = State { does, written: String::new() };
    let fake = Fake(Arc::new((Mutex::new(state), Condvar::new())));
    let notice = |lost| format!("{lost} lost\n").into_bytes();
    (Lines::start(limit, fake.clone(), notice).expect("a thread"), fake)
}

fn push(lines: &Lines, texts: &[&str]) {
    for text in texts {
        lines.push(text.as_bytes());
    }
}

#[test]
fn a_blocked_sink_blocks_nobody_and_losses_are_reported() {
    let (lines, fake) = lines(Does::Stands, 6);
    push(&lines, &["a1\n"]);
    // That one is in the hands of the writer, and takes no place any more.
    while !lines.queue().lines.is_empty() {
        thread::yield_now();
    }
    push(&lines, &["b2\n", "c3\n", "d4\n", "e5\n"]);
    lines.flush(Duration::from_millis(1));
    assert_eq!(fake.written(), "");
    fake.does(Does::Takes);
    lines.flush(PATIENCE);
    push(&lines, &["f6\n"]);
    lines.flush(PATIENCE);
    assert_eq!(fake.written(), "a1\nb2\nc3\n2 lost\nf6\n");
}

#[test]
fn what_a_sink_refuses_is_counted_until_it_takes_lines_again() {
    let (lines, fake) = lines(Does::Fails, 100);
    for text in ["a1\n", "b2\n", "c3\n"] {
        push(&lines, &[text]);
        lines.flush(PATIENCE);
    }
    fake.does(Does::Takes);
    push(&lines, &["d4\n"]);
    lines.flush(PATIENCE);
    fake.does(Does::Fails);
    push(&lines, &["e5\n"]);
    lines.flush(PATIENCE);
    fake.does(Does::Takes);
    push(&lines, &["f6\n"]);
    lines.flush(PATIENCE);
    assert_eq!(fake.written(), "d4\n3 lost\nf6\n1 lost\n");
}

#[test]
fn a_line_that_broke_off_is_lost_and_the_next_one_begins_anew() {
    let (lines, fake) = lines(Does::Breaks, 100);
    push(&lines, &["abc\n"]);
    lines.flush(PATIENCE);
    fake.does(Does::Takes);
    push(&lines, &["def\n"]);
    lines.flush(PATIENCE);
    assert_eq!(fake.written(), "ab\ndef\n1 lost\n");
}

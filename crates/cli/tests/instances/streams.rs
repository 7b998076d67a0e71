//! Streams as their readers see them: events, whole ones only, without the lines that are none.

use serde_json::Value;
use testkit::Streaming;

use crate::world::Instance;

/// What was read of a stream.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Each with its two lines, in order.
    pub(crate) events: Vec<String>,
    /// The stream said that it is over.
    pub(crate) done: bool,
}

impl Seen {
    pub(crate) fn last_number(&self) -> Option<u64> {
        self.events.last().map(|event| number(event))
    }

    /// What comes after the event of this number.
    pub(crate) fn after(&self, after: u64) -> Self {
        let events = self.events.iter().filter(|event| number(event) > after).cloned().collect();
        Self { events, done: self.done }
    }

    /// Checks that it is lawful: the response of its one terminal event.
    pub(crate) fn response(&self) -> Value {
        let sse = self.events.concat() + if self.done { "data: [DONE]\n\n" } else { "" };
        let lawful = testkit::grammar::check(sse.as_bytes());
        lawful.unwrap_or_else(|problem| panic!("{problem}\n{sse}")).response
    }
}

fn number(event: &str) -> u64 {
    data(event)["sequence_number"].as_u64().unwrap()
}

/// What an event says.
pub(crate) fn data(event: &str) -> Value {
    serde_json::from_str(event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap()).unwrap()
}

/// A reader of one stream. Dropping it breaks the connection.
pub(crate) struct Reader {
    stream: Streaming,
    rest: String,
    done: bool,
}

impl Reader {
    pub(crate) fn new(stream: Streaming) -> Self {
        assert_eq!(stream.status, 200);
        Self { stream, rest: String::new(), done: false }
    }

    /// The next event; none when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<String> {
        loop {
            while let Some(end) = self.rest.find("\n\n") {
                let frame: String = self.rest.drain(..end + 2).collect();
                assert!(!self.done, "after the end: {frame}");
                self.done = frame == "data: [DONE]\n\n";
                if !self.done && !frame.starts_with(':') {
                    return Some(frame);
                }
            }
            let bytes = self.stream.next().await.unwrap()?;
            self.rest.push_str(str::from_utf8(&bytes).unwrap());
        }
    }

    /// Reads on until so many events were seen, or to the end, which must be said.
    pub(crate) async fn read(&mut self, most: usize) -> Seen {
        let mut events = Vec::new();
        while events.len() < most {
            let Some(event) = self.next().await else {
                assert!(self.done, "the stream just ends after {:?}", events.last());
                return Seen { events, done: true };
            };
            events.push(event);
        }
        Seen { events, done: false }
    }

    /// Reads to the end.
    pub(crate) async fn into_whole(mut self) -> Seen {
        self.read(usize::MAX).await
    }
}

/// The stream of a response after this event, to its end.
pub(crate) async fn rest(instance: &Instance, id: &str, after: Option<u64>) -> Seen {
    Reader::new(instance.resume(id, after).await).into_whole().await
}

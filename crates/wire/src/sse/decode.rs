//! Bytes in, events out. Push whatever the socket gave, then take events until there are none.
//!
//! One buffer, borrowed events, no allocation per event (a second `data:` line is the exception). The search
//! for a line's end resumes where it stopped, so a megabyte that arrives byte by byte costs linear time.

use memchr::memchr2;

/// One event. An event without any `data:` line is not an event (the specification drops it).
#[derive(Debug, PartialEq, Eq)]
pub struct Event<'d> {
    /// Empty when the stream named none.
    pub name: &'d [u8],
    pub data: &'d [u8],
}

/// A line or an event grew past the cap. The stream cannot be read on.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a server-sent event is larger than {limit} bytes")]
pub struct TooLarge {
    pub limit: usize,
}

#[derive(Debug)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// Everything before this was handed out.
    start: usize,
    /// Everything before this has no line end.
    searched: usize,
    /// Where the line being read starts.
    line: usize,
    /// A CR ended the last line: an LF right after it belongs to it.
    after_cr: bool,
    begun: bool,
    name: Option<(usize, usize)>,
    data: Data,
    joined: Vec<u8>,
    limit: usize,
}

/// The data of the event being read: offsets into the buffer while it is one line, else copied together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Data {
    None,
    Line(usize, usize),
    Joined,
}

impl Decoder {
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            line: 0,
            after_cr: false,
            begun: false,
            name: None,
            data: Data::None,
            joined: Vec::new(),
            limit,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.compact();
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole event, or `None` until more bytes are pushed.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, TooLarge> {
        if self.start == self.line && self.data == Data::None {
            self.start_event();
        }
        while let Some((from, to)) = self.next_line() {
            if from == to {
                if self.data != Data::None {
                    return Ok(Some(self.take()));
                }
                self.start_event();
            } else {
                self.field(from, to);
            }
            self.check(self.line)?;
        }
        self.check(self.buffer.len())?;
        Ok(None)
    }

    /// The event that the end of the stream left unfinished: some servers omit the last blank line.
    pub fn rest(&mut self) -> Option<Event<'_>> {
        if self.line < self.buffer.len() {
            let (from, to) = (self.line, self.buffer.len());
            self.field(from, to);
            self.line = to;
            self.searched = to;
        }
        (self.data != Data::None).then(|| self.take())
    }

    /// The event being read may not pass the cap; `end` is how far it reaches.
    fn check(&self, end: usize) -> Result<(), TooLarge> {
        if end - self.start > self.limit { Err(TooLarge { limit: self.limit }) } else { Ok(()) }
    }

    /// The offsets of the next line, without its end.
    fn next_line(&mut self) -> Option<(usize, usize)> {
        if self.after_cr && self.line < self.buffer.len() {
            self.after_cr = false;
            if self.buffer[self.line] == b'\n' {
                self.line += 1;
                self.searched = self.searched.max(self.line);
            }
        }
        if !self.begun {
            self.strip_bom()?;
        }
        let found = memchr2(b'\n', b'\r', &self.buffer[self.searched..]);
        let Some(offset) = found else {
            self.searched = self.buffer.len();
            return None;
        };
        let (from, to) = (self.line, self.searched + offset);
        self.after_cr = self.buffer[to] == b'\r';
        self.line = to + 1;
        self.searched = self.line;
        Some((from, to))
    }

    /// A byte order mark may come before the first line; wait until it can be told.
    fn strip_bom(&mut self) -> Option<()> {
        const BOM: &[u8] = b"\xef\xbb\xbf";
        let head = &self.buffer[self.line..];
        if head.len() < BOM.len() && BOM.starts_with(head) {
            return None;
        }
        self.begun = true;
        if head.starts_with(BOM) {
            self.line += BOM.len();
            self.searched = self.searched.max(self.line);
        }
        Some(())
    }

    fn field(&mut self, from: usize, to: usize) {
        let line = &self.buffer[from..to];
        let colon = line.iter().position(|&b| b == b':').unwrap_or(line.len());
        let value = from + (colon + 1 + usize::from(line.get(colon + 1) == Some(&b' '))).min(line.len());
        match &line[..colon] {
            b"data" => self.add_data(value, to),
            b"event" => self.name = Some((value, to)),
            // Older servers of llama.cpp end a stream so.
            b"error" if line.get(value - from) == Some(&b'{') => {
                self.name = Some((from, from + colon));
                self.add_data(value, to);
            }
            // `id`, `retry`, comments, and what the specification does not know.
            _ => {}
        }
    }

    fn add_data(&mut self, from: usize, to: usize) {
        match self.data {
            Data::None => self.data = Data::Line(from, to),
            Data::Line(first_from, first_to) => {
                self.joined.clear();
                self.joined.extend_from_slice(&self.buffer[first_from..first_to]);
                self.join(from, to);
            }
            Data::Joined => self.join(from, to),
        }
    }

    fn join(&mut self, from: usize, to: usize) {
        self.joined.push(b'\n');
        self.joined.extend_from_slice(&self.buffer[from..to]);
        self.data = Data::Joined;
    }

    fn take(&mut self) -> Event<'_> {
        let data = std::mem::replace(&mut self.data, Data::None);
        let name = self.name.take();
        self.start = self.line;
        Event {
            name: name.map_or(&[], |(from, to)| &self.buffer[from..to]),
            data: match data {
                Data::None => &[],
                Data::Line(from, to) => &self.buffer[from..to],
                Data::Joined => &self.joined,
            },
        }
    }

    /// A blank line without data, or the place after an event: what came before is of no use any more.
    fn start_event(&mut self) {
        self.name = None;
        self.start = self.line;
    }

    /// Drops what was handed out, so that the buffer holds one event and what came after it.
    fn compact(&mut self) {
        if self.start == 0 {
            return;
        }
        let gone = self.start;
        self.buffer.drain(..gone);
        self.start = 0;
        self.line -= gone;
        self.searched -= gone;
        if let Data::Line(from, to) = self.data {
            self.data = Data::Line(from - gone, to - gone);
        }
        self.name = self.name.map(|(from, to)| (from - gone, to - gone));
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;

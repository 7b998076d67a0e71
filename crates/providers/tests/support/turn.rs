//! A response of one answer, with everything fixed that chance or time would decide.

use bridge::{End, Events, Flow, Note, Reader, ResponseWriter};

const ENDED_AT: u64 = 1_700_000_001;

pub(crate) struct Turn {
    reader: Reader,
    response: ResponseWriter,
    out: Events,
}

impl Turn {
    pub(crate) fn new(reader: Reader, mut response: ResponseWriter, mut out: Events) -> Self {
        response.open(&mut out);
        Self { reader, response, out }
    }

    pub(crate) fn chunk(&mut self, data: &[u8]) -> Flow {
        self.reader.chunk(data, &mut self.response, &mut self.out)
    }

    /// The events, or the object where there are none; and what was noted.
    pub(crate) fn end(mut self, how: End) -> (Vec<u8>, Vec<Note>) {
        let end = self.reader.end(how, &mut self.response, &mut self.out);
        self.response.finish(end);
        let mut object = Vec::new();
        self.response.object(ENDED_AT, true, &mut object);
        self.response.terminal(&object, &mut self.out);
        let out = if self.out.is_silent() { object } else { self.out.take() };
        (out, self.response.notes().to_vec())
    }
}

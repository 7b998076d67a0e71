//! Counts with the tokenizers of OpenAI's models, in the form in which those are shown a chat.

use std::sync::LazyLock;

use wire::json::{Raw, Text, unescape};

use crate::body::{self, Meter};
use crate::merge::Merge;
use crate::split::{self, Splitter};
use crate::vocabulary::Vocabulary;
use crate::{Count, Encoding, estimate, typescript};

/// No window holds more text than this; what is beyond it is estimated, so that no body takes longer than that.
const MOST: usize = 16 << 20;

/// What the form of a chat adds to its text.
#[derive(Debug, Clone, Copy)]
struct Form {
    /// To every request, with the start of the answer.
    start: u64,
    message: u64,
    call: u64,
    /// To a request with tools.
    tools: u64,
    /// To one with a schema for its answer.
    schema: u64,
}

const CHAT: Form = Form { start: 3, message: 3, call: 7, tools: 9, schema: 10 };
/// It begins with a message of its own: who the model is, the date, the channels, how much to think.
const HARMONY: Form = Form { start: 63, message: 3, call: 12, tools: 24, schema: 10 };

/// What splits text into pieces, and pieces into tokens. It is made when it is used first, which takes some milliseconds.
struct Tokenizer {
    splitter: Splitter,
    vocabulary: Vocabulary,
}

impl Tokenizer {
    /// None if these are no patterns.
    fn new(patterns: &[&str], list: &'static [u8]) -> Option<Self> {
        Some(Self { splitter: Splitter::new(patterns).ok()?, vocabulary: Vocabulary::new(list) })
    }
}

/// A list that the build script wrote.
macro_rules! list {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name))
    };
}

static O200K: LazyLock<Option<Tokenizer>> = LazyLock::new(|| Tokenizer::new(&split::O200K, list!("o200k_base")));
static CL100K: LazyLock<Option<Tokenizer>> = LazyLock::new(|| Tokenizer::new(&split::CL100K, list!("cl100k_base")));

pub(crate) fn count(encoding: Encoding, body: &[u8]) -> Option<Count> {
    let (tokenizer, form) = match encoding {
        Encoding::O200k => (&O200K, CHAT),
        Encoding::O200kHarmony => (&O200K, HARMONY),
        Encoding::Cl100k => (&CL100K, CHAT),
    };
    let Tokenizer { splitter, vocabulary } = LazyLock::force(tokenizer).as_ref()?;
    let merge = Merge::new(vocabulary);
    let mut sum = Sum { splitter, merge, form, tokens: form.start, left: MOST, exact: true };
    body::walk(body, &mut sum);
    Some(Count { tokens: sum.tokens, exact: sum.exact })
}

struct Sum {
    splitter: &'static Splitter,
    merge: Merge<'static>,
    form: Form,
    tokens: u64,
    /// How much more is tokenized.
    left: usize,
    exact: bool,
}

impl Sum {
    fn plain(&mut self, text: &str) {
        match self.left.checked_sub(text.len()) {
            Some(left) => {
                self.left = left;
                self.tokens +=
                    self.splitter.pieces(text).map(|piece| self.merge.count(piece.as_bytes()) as u64).sum::<u64>();
            }
            None => {
                self.tokens += estimate::text(text);
                self.exact = false;
            }
        }
    }
}

impl Meter for Sum {
    fn text(&mut self, text: Text<'_>) {
        self.plain(&unescape(text.escaped()));
    }

    fn schema(&mut self, schema: Raw<'_>) {
        self.tokens += self.form.schema;
        self.plain(schema.as_str());
    }

    fn tools(&mut self, tools: Raw<'_>) {
        if let Some(text) = typescript::tools(tools) {
            self.tokens += self.form.tools;
            self.plain(&text);
        }
    }

    fn message(&mut self) {
        self.tokens += self.form.message;
    }

    fn call(&mut self) {
        self.tokens += self.form.call;
    }

    fn other(&mut self, tokens: u64) {
        self.tokens += tokens;
        self.exact = false;
    }
}

//! Counts with the tokenizers of OpenAI's models, in the form in which those are shown a chat.

use bpe_openai::Tokenizer;
use wire::json::{Raw, Text, unescape};

use crate::body::{self, Meter};
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

pub(crate) fn count(encoding: Encoding, body: &[u8]) -> Count {
    let (tokenizer, form) = match encoding {
        Encoding::O200k => (bpe_openai::o200k_base(), CHAT),
        Encoding::O200kHarmony => (bpe_openai::o200k_base(), HARMONY),
        Encoding::Cl100k => (bpe_openai::cl100k_base(), CHAT),
    };
    let mut sum = Sum { tokenizer, form, tokens: form.start, left: MOST, exact: true };
    body::walk(body, &mut sum);
    Count { tokens: sum.tokens, exact: sum.exact }
}

struct Sum {
    tokenizer: &'static Tokenizer,
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
                self.tokens += self.tokenizer.count(text) as u64;
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

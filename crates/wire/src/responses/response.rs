//! The Response object: closed, and one superset of what OpenAI's schema, its SDKs and Open Responses require.
//!
//! What a request echoes into it never changes during a turn, so it is written once ([`Echo::tail`]) and
//! copied into each snapshot, around the one member among them that the provider decides.

use crate::id::Id;
use crate::json::{Number, ObjectWriter, Raw, Text, pair_surrogates, write_text};

/// `status` of a response and of its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Queued,
    InProgress,
    Completed,
    Incomplete,
    Failed,
    Cancelled,
}

impl Status {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// `usage`, normalised: totals add up, details are always there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    pub input_tokens: u64,
    pub cached_tokens: u64,
    pub cache_write_tokens: u64,
    pub output_tokens: u64,
    pub reasoning_tokens: u64,
    pub total_tokens: u64,
}

impl Usage {
    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_add(other.cache_write_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
            total_tokens: self.total_tokens.saturating_add(other.total_tokens),
        }
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        let mut usage = ObjectWriter::new(out);
        usage.int("input_tokens", self.input_tokens);
        let mut input = ObjectWriter::new(usage.key("input_tokens_details"));
        input.int("cached_tokens", self.cached_tokens).int("cache_write_tokens", self.cache_write_tokens);
        input.end();
        usage.int("output_tokens", self.output_tokens);
        let mut output = ObjectWriter::new(usage.key("output_tokens_details"));
        output.int("reasoning_tokens", self.reasoning_tokens);
        output.end();
        usage.int("total_tokens", self.total_tokens);
        usage.end();
    }
}

/// `error` of a failed response, and of the `error` event before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseError {
    pub code: String,
    pub kind: &'static str,
    pub message: String,
    pub param: Option<String>,
}

impl ResponseError {
    /// `{"type","code","message","param"}`.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut error = ObjectWriter::new(out);
        error.text("type", self.kind);
        self.members(&mut error);
        error.end();
    }

    /// `code`, `message`, `param`: also the flat half of the `error` event.
    pub fn members(&self, object: &mut ObjectWriter<'_>) {
        object.text("code", &self.code).text("message", &self.message);
        match &self.param {
            Some(param) => object.text("param", param),
            None => object.null("param"),
        };
    }
}

/// What the response says back about its request: the values in force, defaults filled in.
#[derive(Debug)]
pub struct Echo<'a> {
    pub model: Text<'a>,
    pub instructions: Option<Text<'a>>,
    pub previous_response_id: Option<Text<'a>>,
    pub conversation: Option<Text<'a>>,
    pub background: bool,
    pub tools: &'a [u8],
    pub tool_choice: &'a [u8],
    pub parallel_tool_calls: bool,
    pub max_tool_calls: Option<i64>,
    pub max_output_tokens: Option<i64>,
    pub temperature: Option<Number<'a>>,
    pub top_p: Option<Number<'a>>,
    pub top_logprobs: i64,
    pub presence_penalty: Option<Number<'a>>,
    pub frequency_penalty: Option<Number<'a>>,
    pub text: &'a [u8],
    pub reasoning_effort: Option<Text<'a>>,
    pub reasoning_summary: Option<Text<'a>>,
    pub truncation: Option<Text<'a>>,
    pub metadata: Option<Raw<'a>>,
    pub safety_identifier: Option<Text<'a>>,
    pub prompt_cache_key: Option<Text<'a>>,
    pub prompt: Option<Raw<'a>>,
    pub user: Option<Text<'a>>,
}

impl Echo<'_> {
    /// The members, ready for the end of a snapshot.
    pub fn tail(&self) -> Tail {
        let text = |value: Option<Text<'_>>| value.map_or("null".to_owned(), |text| text.raw().as_str().to_owned());
        let number = |value: Option<Number<'_>>, default: &str| {
            value.map_or(default.to_owned(), |number| number.raw.as_str().to_owned())
        };
        let mut out = Vec::with_capacity(1024 + self.tools.len());
        let mut echo = ObjectWriter::new(&mut out);
        echo.raw("model", self.model.raw());
        echo.bool("background", self.background);
        echo.json("instructions", text(self.instructions).as_bytes());
        echo.json("previous_response_id", text(self.previous_response_id).as_bytes());
        if let Some(id) = self.conversation {
            let mut conversation = ObjectWriter::new(echo.key("conversation"));
            conversation.raw("id", id.raw());
            conversation.end();
        }
        echo.json("tools", self.tools).json("tool_choice", self.tool_choice);
        echo.bool("parallel_tool_calls", self.parallel_tool_calls);
        integer_or_null(&mut echo, "max_tool_calls", self.max_tool_calls);
        integer_or_null(&mut echo, "max_output_tokens", self.max_output_tokens);
        echo.json("temperature", number(self.temperature, "1").as_bytes());
        echo.json("top_p", number(self.top_p, "1").as_bytes());
        echo.int("top_logprobs", self.top_logprobs);
        echo.json("presence_penalty", number(self.presence_penalty, "0").as_bytes());
        echo.json("frequency_penalty", number(self.frequency_penalty, "0").as_bytes());
        echo.json("text", self.text);
        let mut reasoning = ObjectWriter::new(echo.key("reasoning"));
        reasoning.raw_or_null("effort", self.reasoning_effort.map(Text::raw));
        reasoning.raw_or_null("summary", self.reasoning_summary.map(Text::raw));
        reasoning.end();
        echo.json("truncation", self.truncation.map_or("\"disabled\"", |text| text.raw().as_str()).as_bytes());
        echo.json("metadata", self.metadata.map_or("{}", Raw::as_str).as_bytes());
        let tier_at = echo.key("service_tier").len();
        echo.json("safety_identifier", text(self.safety_identifier).as_bytes());
        echo.json("prompt_cache_key", text(self.prompt_cache_key).as_bytes());
        if let Some(prompt) = self.prompt {
            echo.raw("prompt", prompt);
        }
        echo.json("user", text(self.user).as_bytes());
        echo.end();
        // What clients send is kept as it is, but not all of them can read it.
        pair_surrogates(&mut out);
        out[0] = b',';
        out.pop();
        Tail { members: out, tier_at: Some(tier_at) }
    }
}

/// What [`Echo`] comes to: members, each preceded by a comma, and a gap for the tier.
#[derive(Debug, Clone, Default)]
pub struct Tail {
    members: Vec<u8>,
    tier_at: Option<usize>,
}

impl From<Vec<u8>> for Tail {
    /// Members without a tier.
    fn from(members: Vec<u8>) -> Self {
        Self { members, tier_at: None }
    }
}

impl Tail {
    fn write(&self, tier: ServiceTier, out: &mut Vec<u8>) {
        let Some((before, after)) = self.tier_at.and_then(|at| self.members.split_at_checked(at)) else {
            return out.extend_from_slice(&self.members);
        };
        out.extend_from_slice(before);
        write_text(out, tier.name());
        out.extend_from_slice(after);
    }
}

/// `service_tier`: how a request was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServiceTier {
    Auto,
    #[default]
    Default,
    Flex,
    Scale,
    Priority,
    Fast,
    Ultrafast,
}

impl ServiceTier {
    const ALL: [Self; 7] =
        [Self::Auto, Self::Default, Self::Flex, Self::Scale, Self::Priority, Self::Fast, Self::Ultrafast];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Default => "default",
            Self::Flex => "flex",
            Self::Scale => "scale",
            Self::Priority => "priority",
            Self::Fast => "fast",
            Self::Ultrafast => "ultrafast",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.name() == name)
    }
}

fn integer_or_null(object: &mut ObjectWriter<'_>, name: &str, value: Option<i64>) {
    match value {
        Some(value) => object.int(name, value),
        None => object.null(name),
    };
}

/// The object at one moment of its life.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a> {
    pub id: &'a Id,
    pub created_at: u64,
    pub completed_at: Option<u64>,
    pub status: Status,
    pub error: Option<&'a ResponseError>,
    /// `incomplete_details.reason`.
    pub incomplete_reason: Option<&'a str>,
    /// The closed items, comma between them.
    pub output: &'a [u8],
    pub usage: Option<Usage>,
    pub store: bool,
    pub service_tier: ServiceTier,
    /// [`Echo::tail`].
    pub echo: &'a Tail,
}

impl Snapshot<'_> {
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut response = ObjectWriter::new(out);
        response.text("id", self.id.as_str()).text("object", "response").int("created_at", self.created_at);
        response.text("status", self.status.name());
        match self.completed_at {
            Some(at) => response.int("completed_at", at),
            None => response.null("completed_at"),
        };
        match self.error {
            Some(error) => error.write(response.key("error")),
            None => response.key("error").extend_from_slice(b"null"),
        }
        match self.incomplete_reason {
            Some(reason) => {
                let mut details = ObjectWriter::new(response.key("incomplete_details"));
                details.text("reason", reason);
                details.end();
            }
            None => response.key("incomplete_details").extend_from_slice(b"null"),
        }
        let output = response.key("output");
        output.push(b'[');
        output.extend_from_slice(self.output);
        output.push(b']');
        match self.usage {
            Some(usage) => usage.write(response.key("usage")),
            None => response.key("usage").extend_from_slice(b"null"),
        }
        response.bool("store", self.store);
        self.echo.write(self.service_tier, out);
        out.push(b'}');
    }
}

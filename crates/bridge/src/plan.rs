//! The request side: a Responses request, what came before it and a dialect make the chat request to send and
//! the knowledge of how to read its answer. Every decision about compatibility is taken here, with a note.

mod cache_marks;
mod check;
mod compaction;
mod content;
mod echo;
mod forward;
mod hosted;
mod item_path;
mod json;
mod links;
mod messages;
mod needs;
mod notes;
mod options;
mod output;
mod reasoning;
mod remaining_params;
mod tools;
mod transcript;

use std::sync::Arc;

use wire::chat::{self, Absent, Style};
use wire::json::{Invalid, Raw};
use wire::responses::{CreateResponse, Input, InputItem};

pub use check::metadata as check_metadata;
pub use compaction::{CompactionWish, each_sent_item, first_sent};
pub use content::InlineFile;
pub use echo::tail as echo;
pub use forward::{forward, forward_linked};
pub use links::Link;
pub use messages::{plan_messages, plan_messages_linked};

use crate::context::{AnswerContext, AnswerWire, OutputContract};
use crate::dialect::{AbsentContent, CacheMarks, Dialect, EffortField, ReplayField, StreamUsage};
use crate::note::Note;
use crate::seal::{PromptEnd, Seal};
use item_path::Items;
pub use needs::Needs;
use notes::Notes;
use output::Output;
use remaining_params::Retention;
use tools::Tools;
use transcript::Transcript;
pub use transcript::{CallRole, call_role};

/// Whom one turn is planned for, and how forgiving we are about it.
#[derive(Debug, Clone, Copy)]
pub struct PlanTarget<'a> {
    /// The model's name there.
    pub model: &'a str,
    pub dialect: &'a Dialect,
    pub policy: Policy,
    /// Opens what we sealed in earlier turns.
    pub seal: &'a dyn Seal,
    /// What is in images that the model cannot see, where somebody looks at them for it.
    pub images: Option<&'a dyn ImageTexts>,
    /// What is in files that the model does not take, where somebody reads them for it.
    pub files: Option<&'a dyn FileTexts>,
    /// What the provider gets instead of the client's `prompt_cache_key`.
    pub cache_key: Option<&'a str>,
    pub hosting: Hosting,
}

/// Which tools godex runs itself for this request, and how far its rounds are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hosting {
    /// `mcp` tools are functions to the model: those that the latest `mcp_list_tools` item of their label lists, as far as
    /// `allowed_tools` lets them be. Otherwise they are left out, with a note, unless the provider has them.
    pub mcp: bool,
    /// Lists will still be asked for: that a tool is not there yet is no error.
    pub lists_pending: bool,
    /// `web_search` is functions to the model, where the provider has no search of its own: see [`SearchFunctions`].
    pub web_search: Option<SearchFunctions>,
    /// What is done about `web_search` where nobody runs it.
    pub unsearched: Unsearched,
    pub round: Round,
    /// The input ends with what the model said when it paused by itself ([`crate::RoundEnd::Paused`]): it goes on from there.
    pub resumes: bool,
    /// What the rounds before this one have answered, in tokens: `max_output_tokens` is for all of them.
    pub answered_tokens: u64,
}

impl Hosting {
    /// Whether godex runs any tool for this request.
    const fn runs(self) -> bool {
        self.mcp || self.web_search.is_some()
    }

    /// What is left of `max_output_tokens` for this round.
    fn left_of(self, limit: i64, least: i64) -> i64 {
        match i64::try_from(self.answered_tokens) {
            Ok(0) => limit,
            Ok(answered) => limit.saturating_sub(answered).max(least),
            Err(_) => least,
        }
    }
}

/// The functions that stand for `web_search`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchFunctions {
    /// `open_page` and `find_in_page`, beside `web_search`.
    pub pages: bool,
}

/// What becomes of a search tool that nobody runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unsearched {
    /// It is left out, with a note, or refused, as the dialect says.
    #[default]
    LeaveOut,
    Refuse,
    /// A function takes its place, whose calls the client answers.
    ClientCall,
}

/// Which upstream answer of a response it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Round {
    #[default]
    First,
    /// A call that was demanded has been made: the model is free.
    Later,
    /// No tool may be called any more.
    Last,
}

/// What is in images, in words.
pub trait ImageTexts: std::fmt::Debug {
    /// Of the image at this URL, which may hold it; None: nobody could say.
    fn of(&self, url: &str) -> Option<Arc<str>>;
}

/// What is in files, as text.
pub trait FileTexts: std::fmt::Debug {
    /// Of the PDF with these data, as the request has them.
    fn pdf(&self, data: &str) -> Result<PdfText, PdfUnread>;

    /// The most bytes of such text in one request. The first files get it: so a longer conversation begins as the shorter
    /// one did.
    fn room(&self) -> usize;

    /// How many PDFs of one request are read. They are the first ones, too.
    fn most(&self) -> usize;
}

/// What was read of a PDF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PdfText {
    /// With a mark before each page.
    pub text: Arc<str>,
    /// How many pages are in it, and how many the file has.
    pub pages: usize,
    pub of: usize,
    /// The last of them is not all there.
    pub cut: bool,
}

/// Why nothing was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PdfUnread {
    Encrypted,
    Damaged,
    /// As with scanned paper.
    NoText,
    /// It took too long, or too much memory.
    Limits,
    /// Somebody else's were read, or it could not be tried.
    Unavailable,
    /// Nobody reads PDFs here.
    NotBuilt,
}

/// The operator's choices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policy {
    /// What would be ignored is refused instead.
    pub strict: bool,
    /// An output that answers no known call becomes a message instead of a 400.
    pub repair_history: bool,
}

/// What to send, and how to read what comes back.
#[derive(Debug)]
pub struct Plan {
    /// The chat request's body.
    pub body: Vec<u8>,
    pub context: AnswerContext,
    pub notes: Vec<Note>,
}

/// Plans one turn. `past` is the history that the session holds, oldest first.
pub fn plan(request: &CreateResponse<'_>, past: &[InputItem<'_>], target: PlanTarget<'_>) -> Result<Plan, Invalid> {
    build(request, past, target, Notes::new(target.policy.strict)).map(|(plan, _)| plan)
}

/// The same plan, with what became of each part of the request.
pub fn plan_linked(
    request: &CreateResponse<'_>,
    past: &[InputItem<'_>],
    target: PlanTarget<'_>,
) -> Result<(Plan, Vec<Link>), Invalid> {
    build(request, past, target, Notes::linking(target.policy.strict))
}

fn build(
    request: &CreateResponse<'_>,
    past: &[InputItem<'_>],
    target: PlanTarget<'_>,
    mut notes: Notes,
) -> Result<(Plan, Vec<Link>), Invalid> {
    check::ranges(request)?;
    let dialect = target.dialect;
    let opened = compaction::open(request, past, target.seal);
    let unfolded = compaction::unfold(&opened);
    let items = Items::of(request, past, &unfolded);
    let Decided { mut tools, format, contract, mut messages, reasoning } =
        Decided::plan(request, &items, target, &mut notes)?;
    let native_members = tools.members();
    if dialect.request.reasoning.placeholder && !reasoning.is_off {
        transcript::fill_lost_reasoning(&mut messages, &dialect.request.reasoning);
    }
    let messages = transcript::shape(messages, &dialect.request.messages, notes.links());
    let mut body = chat::Request {
        model: target.model,
        marked: cache_marks::places(&messages, dialect.request.messages.cache_marks),
        messages,
        style: style(dialect),
        stream: request.stream.unwrap_or(false),
        include_usage: dialect.stream_usage == StreamUsage::Request,
        response_format: format,
        extra: reasoning.members,
        ..chat::Request::default()
    };
    let effort_object = match reasoning.effort {
        Some((EffortField::Object, word)) => Some(effort_object(&word)),
        Some((_, word)) => {
            body.strings.push(("reasoning_effort", word));
            None
        }
        None => None,
    };
    body.extra.extend(effort_object.as_deref());
    options::plan(request, target, &mut body, &mut notes);
    remaining_params::plan(request, target.hosting, Retention::Unknown, &mut notes)?;
    let context = AnswerContext {
        wire: AnswerWire::Chat,
        tools: tools.offered(),
        reasoning_summary: wants_summary(request),
        logprobs: body.logprobs,
        output: contract,
        grammars: tools.grammars(),
        renamed: tools.renamed(),
        prompt_end: PromptEnd::default(),
    };
    body.extra.extend(native_members.iter().map(String::as_str));
    body.tool_choice = tools.choice.take();
    body.parallel_tool_calls = tools.parallel;
    tools.place(&mut notes);
    body.tools = tools.into_declared();
    let body = body.write(capacity(request, past));
    let (notes, links) = notes.finish_linked(request, past, &unfolded)?;
    Ok((Plan { body, context, notes }, links))
}

/// What is decided before any of it has the form of one API.
struct Decided<'a> {
    tools: Tools<'a>,
    format: Option<chat::ResponseFormat<'a>>,
    contract: OutputContract,
    messages: Vec<chat::Message<'a>>,
    reasoning: reasoning::Planned<'a>,
}

impl<'a> Decided<'a> {
    fn plan(
        request: &CreateResponse<'a>,
        items: &Items<'_, 'a>,
        target: PlanTarget<'a>,
        notes: &mut Notes,
    ) -> Result<Self, Invalid> {
        let dialect = target.dialect;
        let mut tools = Tools::plan(request, items, dialect, target.hosting, notes)?;
        let Output { format, instruction, contract } = Output::plan(request, dialect, tools.any(), notes)?;
        let Transcript { mut messages, carries_reasoning } =
            Transcript::build(request, items, instruction, &tools.catalog, target, notes)?;
        content::keep_to_limits(&mut messages, &dialect.request.content, notes);
        let reasoning = reasoning::plan(request, dialect, &mut tools, carries_reasoning, notes)?;
        Ok(Self { tools, format, contract, messages, reasoning })
    }
}

fn style(dialect: &Dialect) -> Style {
    let rules = &dialect.request;
    Style {
        absent: match rules.messages.absent_content {
            AbsentContent::Null => Absent::Null,
            AbsentContent::Empty => Absent::Empty,
            AbsentContent::Omit => Absent::Omitted,
        },
        // Text that has once been marked is written alike when the mark has moved on.
        text_as_parts: rules.messages.text_as_parts || rules.messages.cache_marks != CacheMarks::None,
        reasoning_field: match rules.reasoning.field {
            ReplayField::ReasoningContent => Some("reasoning_content"),
            ReplayField::Reasoning => Some("reasoning"),
            ReplayField::ThinkingParts | ReplayField::Bag | ReplayField::Blocks => None,
        },
        thinking_parts: rules.reasoning.field == ReplayField::ThinkingParts,
    }
}

/// `{"reasoning":{"effort":…}}`.
fn effort_object(word: &chat::Str<'_>) -> String {
    json::text(|out| {
        out.extend_from_slice(br#"{"reasoning":{"effort":"#);
        word.write(out);
        out.extend_from_slice(b"}}");
    })
}

fn wants_summary(request: &CreateResponse<'_>) -> bool {
    let config = request.reasoning.as_ref();
    config.is_some_and(|config| config.summary.or(config.generate_summary).is_some())
}

/// About how many bytes the body will have: as many as what it is made of.
fn capacity(request: &CreateResponse<'_>, past: &[InputItem<'_>]) -> usize {
    let bytes = |items: &[InputItem<'_>]| items.iter().map(|item| item.raw.as_str().len()).sum::<usize>();
    let input = match &request.input {
        Some(Input::Text(text)) => text.escaped().len(),
        Some(Input::Items(items)) => bytes(items),
        None => 0,
    };
    let tools = request.tools.iter().flatten().map(|tool| tool.raw.as_str().len() + 64).sum::<usize>();
    let instructions = request.instructions.map_or(0, |text| Raw::as_str(text.raw()).len());
    1024 + bytes(past) + input + tools + instructions
}

//! The `catalog` and `discovery` sections of a spec: what clients that ask for a catalogue of models are told of a
//! model, and where a provider's own list of models says it. Nothing here reaches a request or an answer.

use bridge::Effort;

use super::layer::{layer, word};
use crate::yaml::{Field, Section};

bridge::vocabulary! {
    /// How a client that edits files has the model write patches.
    pub enum ApplyPatch {
        /// With the custom tool `apply_patch`, whose input is the patch.
        Freeform = "freeform",
        /// As a command of the shell: for models that get a patch wrong when it is a tool's whole input.
        Shell = "shell",
    }
}

bridge::vocabulary! {
    /// How a client that can has the model work with sub-agents.
    pub enum SubAgents {
        /// By calls of functions: what every chat model can do.
        V1 = "v1",
        /// By messages among agents.
        V2 = "v2",
        Disabled = "disabled",
    }
}

/// What a catalogue says of a model beyond what follows from how it is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogRules {
    pub display_name: Option<String>,
    /// What a request may have, where that is less than the window.
    pub max_input: Option<u64>,
    pub default_effort: Option<Effort>,
    pub apply_patch: ApplyPatch,
    pub sub_agents: SubAgents,
    /// Tools are found by searching for them.
    pub tool_search: bool,
    /// So many tokens of a tool's output.
    pub tool_output: u64,
}

impl Default for CatalogRules {
    fn default() -> Self {
        Self {
            display_name: None,
            max_input: None,
            default_effort: None,
            apply_patch: ApplyPatch::Freeform,
            sub_agents: SubAgents::V1,
            tool_search: false,
            tool_output: 10_000,
        }
    }
}

layer!(Catalog over CatalogRules {
    /// What people are shown instead of the model's name.
    display_name: Option<String> = |field| field.text().map(Some),
    /// How many tokens a request may have, where the window has more because it holds the answer, too.
    max_input: Option<u64> = |field| tokens(field).map(Some),
    /// The effort that is asked for unless the user says another. By default `medium`, `high` or the lowest, the first
    /// of them that the model has.
    default_effort: Option<Effort> = |field| field.choice(Effort::ALL, Effort::name).map(Some),
    /// How Codex has the model write patches.
    apply_patch: ApplyPatch = word!(ApplyPatch),
    /// How Codex has the model work with sub-agents.
    sub_agents: SubAgents = word!(SubAgents),
    /// Whether Codex lets the model search for the tools of MCP servers instead of showing it all of them. What is found
    /// changes the list of tools, and with it the prefix that providers cache.
    tool_search: bool = Field::boolean,
    /// How many tokens of a tool's output Codex keeps; less where the window is small.
    tool_output: u64 = tokens,
});

/// Where a provider's own list of models is, and what its entries say. Ways into an entry have dots: `meta.n_ctx`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiscoveryRules {
    pub path: Option<String>,
    pub list: Vec<String>,
    pub name: Vec<String>,
    pub context_window: Vec<String>,
    pub images: Vec<(String, Vec<String>)>,
    pub chat: Vec<(String, Vec<String>)>,
    pub server_path: Option<String>,
    pub server_context_window: Vec<String>,
}

layer!(Discovery over DiscoveryRules {
    /// Where the list of models is, after the base URL; `/../` goes up from there.
    path: Option<String> = |field| path(field).map(Some),
    /// The member that is the list: the first of these that is one.
    list: Vec<String> = Field::texts,
    /// The member of an entry with the model's name. Ways deeper into an entry have dots: `meta.n_ctx`.
    name: Vec<String> = Field::texts,
    /// The member with the number of tokens that the model takes: the first of these that is there.
    context_window: Vec<String> = Field::texts,
    /// Members that tell whether the model sees images, each with the values, one of which must be there.
    images: Vec<(String, Vec<String>)> = values,
    /// Members that tell whether it is a model to chat with, in the same way; others are left out.
    chat: Vec<(String, Vec<String>)> = values,
    /// Where the server says what holds for every model of it, or lists those that it has loaded.
    server_path: Option<String> = |field| path(field).map(Some),
    /// The member of that with the number of tokens; it wins over what an entry says.
    server_context_window: Vec<String> = Field::texts,
});

pub(super) fn tokens(field: &Field<'_>) -> Option<u64> {
    field.integer(1..=1_000_000_000)
}

fn path(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "/-._~?=&".contains(c);
    if !text.starts_with('/') || !text.chars().all(fits) {
        field.problem("expected a path such as `/models`", None);
        return None;
    }
    Some(text)
}

/// `{MEMBER: VALUE}`, or a list of values.
fn values(field: &Field<'_>) -> Option<Vec<(String, Vec<String>)>> {
    let values = |(member, field): (String, Field<'_>)| {
        Some((member, if field.is_list() { field.texts()? } else { vec![field.text()?] }))
    };
    Some(field.entries()?.into_iter().filter_map(values).collect())
}

//! What is known of one model, or of several that one name stands for: only what holds for all of them is said.

use bridge::{Dialect, Effort, EffortField, ImageInput, Parameter};
use providers::{ApplyPatch, SubAgents};

use crate::config::ProviderConfig;
use crate::upstream::ListedModel;

/// What a model is taken to have room for when nobody says: clients would assume more, and run into an error that many
/// servers do not even give. Models on this machine or network are often run with little memory.
const ASSUMED: u64 = 131_072;
const ASSUMED_LOCAL: u64 = 32_768;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) display_name: Option<String>,
    /// How many tokens a request may have.
    pub(super) window: Window,
    /// Images are welcome: it sees them, or they are described to it.
    pub(super) images: bool,
    /// From the least thinking to the most.
    pub(super) levels: Vec<Effort>,
    pub(super) default_level: Option<Effort>,
    pub(super) verbosity: bool,
    pub(super) apply_patch: ApplyPatch,
    pub(super) sub_agents: SubAgents,
    pub(super) tool_search: bool,
    tool_output: u64,
}

/// A number of tokens, and whether anybody said it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Window {
    Known(u64),
    Assumed(u64),
}

impl Window {
    pub(super) const fn tokens(self) -> u64 {
        match self {
            Self::Known(tokens) | Self::Assumed(tokens) => tokens,
        }
    }

    pub(super) const fn known(self) -> Option<u64> {
        match self {
            Self::Known(tokens) => Some(tokens),
            Self::Assumed(_) => None,
        }
    }

    fn and(self, other: Self) -> Self {
        let least = self.tokens().min(other.tokens());
        if matches!((self, other), (Self::Known(_), Self::Known(_))) {
            Self::Known(least)
        } else {
            Self::Assumed(least)
        }
    }
}

impl Default for Facts {
    fn default() -> Self {
        Self {
            display_name: None,
            window: Window::Assumed(ASSUMED),
            images: false,
            levels: Vec::new(),
            default_level: None,
            verbosity: false,
            apply_patch: ApplyPatch::Freeform,
            sub_agents: SubAgents::V1,
            tool_search: false,
            tool_output: 0,
        }
    }
}

impl Facts {
    /// What was found out wins over what the configuration and its specs say, and that over what the provider lists.
    pub(super) fn of(
        provider: &ProviderConfig,
        model: &str,
        listed: Option<&ListedModel>,
        found_out: Option<u64>,
        describes: bool,
    ) -> Self {
        let spec = provider.provider.for_model(model);
        let known = found_out.or(spec.request_window()).or_else(|| listed?.context_window);
        let assumed = if provider.is_private() { ASSUMED_LOCAL } else { ASSUMED };
        let sees = spec.dialect.request.content.images != ImageInput::None;
        let levels = levels(&spec.dialect);
        let default_level = spec.catalog.default_effort.filter(|level| levels.contains(level));
        Self {
            display_name: spec.catalog.display_name,
            window: known.map_or(Window::Assumed(assumed), Window::Known),
            images: if sees { listed.and_then(|listed| listed.images).unwrap_or(true) } else { describes },
            default_level: default_level.or_else(|| default_of(&spec.dialect, &levels)),
            levels,
            verbosity: !spec.dialect.drops(Parameter::Verbosity),
            apply_patch: spec.catalog.apply_patch,
            sub_agents: spec.catalog.sub_agents,
            tool_search: spec.catalog.tool_search,
            tool_output: spec.catalog.tool_output,
        }
    }

    /// What holds for this and for another that may take its place.
    pub(super) fn and(self, other: &Self) -> Self {
        let levels: Vec<Effort> = self.levels.into_iter().filter(|level| other.levels.contains(level)).collect();
        Self {
            display_name: self.display_name,
            window: self.window.and(other.window),
            images: self.images && other.images,
            default_level: self.default_level.filter(|level| levels.contains(level)),
            levels,
            verbosity: self.verbosity && other.verbosity,
            apply_patch: self.apply_patch,
            sub_agents: self.sub_agents,
            tool_search: self.tool_search && other.tool_search,
            tool_output: self.tool_output.min(other.tool_output),
        }
    }

    /// How many tokens of a tool's output are kept: several of them must fit.
    pub(super) fn tool_output(&self) -> u64 {
        self.tool_output.min(self.window.tokens() / 8)
    }

    /// The number of tokens at which a history should be compacted: one more output and an answer must have room.
    pub(super) fn compact_at(&self) -> u64 {
        let window = self.window.tokens();
        window.saturating_sub(2 * self.tool_output()).min(window / 10 * 9)
    }
}

/// The efforts that make a difference: of those that are one to the provider, the one that it has the name of.
fn levels(dialect: &Dialect) -> Vec<Effort> {
    let rules = &dialect.request.reasoning;
    if rules.effort == EffortField::None || dialect.drops(Parameter::ReasoningEffort) {
        let switch = rules.on.is_some() && rules.off.is_some();
        return if switch { vec![Effort::None, Effort::Medium] } else { Vec::new() };
    }
    if rules.ladder.is_empty() {
        return vec![Effort::Low, Effort::Medium, Effort::High];
    }
    let ladder = &rules.ladder;
    let stands_for = |effort: &Effort, word: &String| {
        let mut same = ladder.iter().filter(|(_, other)| other == word).map(|(effort, _)| *effort);
        let named = same.clone().find(|other| other.name() == word);
        named.or_else(|| same.next()) == Some(*effort)
    };
    let has = |effort: &Effort| ladder.iter().any(|(rung, word)| rung == effort && stands_for(rung, word));
    let mut levels: Vec<Effort> = Effort::ALL.iter().copied().filter(has).collect();
    if rules.off.as_deref().is_some_and(|off| off != "{}") && !levels.contains(&Effort::None) {
        levels.insert(0, Effort::None);
    }
    levels
}

/// Where nobody knows which efforts the model takes, none is asked for unless the user does.
fn default_of(dialect: &Dialect, levels: &[Effort]) -> Option<Effort> {
    let rules = &dialect.request.reasoning;
    if rules.ladder.is_empty() && rules.effort != EffortField::None {
        return None;
    }
    let preferred = [Effort::Medium, Effort::High].into_iter().find(|level| levels.contains(level));
    preferred.or_else(|| levels.iter().copied().find(|level| *level != Effort::None))
}

#[cfg(test)]
mod tests {
    use providers::{Library, resolve_named};

    use super::*;

    #[test]
    fn levels_are_those_that_make_a_difference() {
        for (spec, model, expected, default) in [
            ("deepseek", "deepseek-v4-pro", "none low high max", Some("high")),
            // A switch.
            ("zhipu", "glm-5.2", "none high max", Some("high")),
            ("moonshot", "kimi-k3", "low high max", Some("high")),
            ("xiaomi", "mimo-v2.5-pro", "none low medium high", Some("medium")),
            ("groq", "openai/gpt-oss-120b", "low medium high", Some("medium")),
            ("groq", "qwen/qwen3-32b", "none minimal", Some("minimal")),
            ("mistral", "magistral-medium", "none high", Some("high")),
            // Nobody knows: what the user asks for is passed on, and else nothing is asked for.
            ("openai-compatible", "m", "low medium high", None),
            ("mistral", "codestral-latest", "", None),
            ("openai", "gpt-4.1", "", None),
        ] {
            let provider = resolve_named(Library::BUILTIN, spec, &|_| None).unwrap();
            let dialect = provider.for_model(model).dialect;
            let levels = levels(&dialect);
            let names: Vec<&str> = levels.iter().map(|level| level.name()).collect();
            assert_eq!(
                (&*names.join(" "), default_of(&dialect, &levels).map(Effort::name)),
                (expected, default),
                "{spec}"
            );
        }
    }

    #[test]
    fn several_targets_promise_what_all_of_them_have() {
        let one = Facts {
            window: Window::Known(200_000),
            images: true,
            levels: vec![Effort::Low, Effort::High],
            default_level: Some(Effort::High),
            tool_output: 10_000,
            ..Facts::default()
        };
        let other =
            Facts { window: Window::Known(32_768), levels: vec![Effort::Low], tool_output: 10_000, ..Facts::default() };
        let both = one.clone().and(&other);
        let found = (both.window, both.images, &*both.levels, both.default_level);
        assert_eq!(found, (Window::Known(32_768), false, &[Effort::Low][..], None));
        assert_eq!((both.tool_output(), both.compact_at()), (4096, 24_576));
        assert_eq!((one.tool_output(), one.compact_at()), (10_000, 180_000));
        let unknown = Facts { window: Window::Assumed(131_072), ..Facts::default() };
        assert_eq!(one.and(&unknown).window, Window::Assumed(131_072));
    }
}

//! The specs that are part of the binary: `specs/*.yaml` at the root of the workspace.

/// Specs by name, each as YAML text.
#[derive(Debug, Clone, Copy)]
pub struct Library<'a>(pub(crate) &'a [(&'a str, &'a str)]);

macro_rules! embed {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../../specs/", $name, ".yaml")))),+]
    };
}

/// Every spec; those with a key first, in the order in which a start without a configuration prefers them.
const SPECS: &[(&str, &str)] = embed![
    "deepseek",
    "openai",
    "zhipu",
    "minimax",
    "xiaomi",
    "moonshot",
    "qwen",
    "openrouter",
    "groq",
    "mistral",
    "xai",
    "gemini",
    "together",
    "fireworks",
    "cerebras",
    "azure",
    "ollama",
    "vllm",
    "sglang",
    "llamacpp",
    "lmstudio",
    "openai-compatible",
    "responses-compatible",
    "demo",
];

/// What is known of models wherever they are served: entries, for specs that say `families: true`. No spec by itself.
pub(crate) const FAMILIES: (&str, &str) = ("families", include_str!("../../../specs/families.yaml"));

impl Library<'static> {
    /// What the binary carries.
    pub const BUILTIN: Self = Self(SPECS);
}

impl<'a> Library<'a> {
    pub fn names(self) -> impl Iterator<Item = &'a str> {
        self.0.iter().map(|(name, _)| *name)
    }

    pub fn contains(self, name: &str) -> bool {
        self.text(name).is_some()
    }

    pub(crate) fn text(self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }
}

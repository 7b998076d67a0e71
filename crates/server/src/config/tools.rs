//! `tools`: what is made of the calls of custom tools, and the tools that godex runs itself.

use super::{McpConfig, WebSearchConfig};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolsConfig {
    pub grammar: GrammarPolicy,
    pub mcp: McpConfig,
    pub web_search: WebSearchConfig,
}

/// What is done about an input that does not fit its grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GrammarPolicy {
    /// Nothing is looked at.
    Off,
    /// It is mended where little is wrong, and else delivered with a note.
    #[default]
    Check,
    /// That, and one more try where nothing has been sent yet.
    Reask,
}

impl GrammarPolicy {
    pub const ALL: &'static [Self] = &[Self::Off, Self::Check, Self::Reask];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Check => "check",
            Self::Reask => "reask",
        }
    }
}

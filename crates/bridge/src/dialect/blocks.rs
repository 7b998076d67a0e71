//! The words for a provider that speaks the Messages API, whose messages are made of blocks.

vocabulary! {
    /// How the provider is told what of a prompt it should cache.
    pub enum BlockCache {
        /// It is not: it caches by itself, or not at all.
        Off = "off",
        /// Marks on what comes before the messages, on the end of this turn and on that of the turn before.
        Marks = "marks",
        /// One word for the whole request: the provider places its mark itself.
        Automatic = "automatic",
    }
}

vocabulary! {
    /// Whether what the model thinks is shown in words.
    pub enum ThoughtDisplay {
        /// Nothing is said about it.
        Unsaid = "unsaid",
        /// Where the client asks for a summary, and else not.
        Asked = "asked",
        /// Always: what the model says between its calls is among its thoughts.
        Always = "always",
    }
}

vocabulary! {
    /// The kinds of thinking that this API tells apart and servers refuse.
    pub enum ThinkingType {
        Adaptive = "adaptive",
        Enabled = "enabled",
        Disabled = "disabled",
    }
}

/// A provider that speaks the Messages API (`wire: messages`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a word of specs")]
pub struct BlockRules {
    /// The model's name is in the path, and not in the body.
    pub model_in_path: bool,
    /// The limit of an answer that the client sets none for: that API demands one. Of a model whose window is known it is at
    /// most half of that.
    pub default_limit: u64,
    pub cache: BlockCache,
    /// A mark may hold for an hour, where the client asks for a long retention.
    pub cache_hour: bool,
    pub display: ThoughtDisplay,
    /// The input of calls comes while it is written (`eager_input_streaming`).
    pub eager_input: bool,
    /// `service_tier: fast` is `speed: fast`.
    pub fast: bool,
    /// What is tried out with each request, by the names that the provider has for it.
    pub betas: Vec<String>,
    /// The name of the trial with which thoughts that no longer fit are dropped there, instead of the whole request being
    /// refused; empty: there is none.
    pub binding_beta: String,
    /// What turned out not to be taken there: no spec says so.
    pub refused: Vec<ThinkingType>,
}

impl Default for BlockRules {
    fn default() -> Self {
        Self {
            model_in_path: false,
            default_limit: 32_000,
            cache: BlockCache::Off,
            cache_hour: false,
            display: ThoughtDisplay::Unsaid,
            eager_input: false,
            fast: false,
            betas: Vec::new(),
            binding_beta: String::new(),
            refused: Vec::new(),
        }
    }
}

impl BlockRules {
    /// Keeps what nobody asked for within a window, of which the input has as much.
    pub fn keep_within(&mut self, context_window: u64) {
        self.default_limit = self.default_limit.min((context_window / 2).max(1));
    }

    /// Everything that is tried out, in a fixed order: the same for every request to a model.
    pub fn all_betas(&self) -> impl Iterator<Item = &str> {
        let binding = Some(&self.binding_beta).filter(|beta| !beta.is_empty());
        self.betas.iter().chain(binding).map(String::as_str)
    }
}

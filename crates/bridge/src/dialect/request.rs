//! The words for how a provider wants its requests.

vocabulary! {
    /// The name of the output limit in the chat request.
    pub enum LimitField {
        MaxTokens = "max_tokens",
        MaxCompletionTokens = "max_completion_tokens",
    }
}

vocabulary! {
    /// What a `developer` message becomes.
    pub enum DeveloperRole {
        Developer = "developer",
        System = "system",
        User = "user",
    }
}

vocabulary! {
    /// Whether usage of a stream has to be asked for.
    pub enum StreamUsage {
        /// Send `stream_options: {include_usage: true}`.
        Request = "request",
        /// The provider refuses `stream_options`, or sends usage unasked.
        Omit = "omit",
    }
}

vocabulary! {
    /// The best way to get an answer in a given JSON schema.
    pub enum JsonSchema {
        /// `response_format: {type: json_schema}` is honoured.
        Native = "native",
        /// Only `json_object`: the schema goes into an instruction.
        JsonObject = "json_object",
        /// Neither: instruction only.
        Prompt = "prompt",
    }
}

vocabulary! {
    /// Chat parameters that a spec may drop.
    pub enum Parameter {
        Temperature = "temperature",
        TopP = "top_p",
        PresencePenalty = "presence_penalty",
        FrequencyPenalty = "frequency_penalty",
        TopLogprobs = "top_logprobs",
        MaxOutputTokens = "max_output_tokens",
        ParallelToolCalls = "parallel_tool_calls",
        ToolChoice = "tool_choice",
        ReasoningEffort = "reasoning_effort",
        Verbosity = "verbosity",
        ServiceTier = "service_tier",
        Metadata = "metadata",
        SafetyIdentifier = "safety_identifier",
        PromptCacheKey = "prompt_cache_key",
        User = "user",
        Stop = "stop",
    }
}

vocabulary! {
    /// How `content` is written on an assistant message that only calls tools.
    pub enum AbsentContent {
        Null = "null",
        /// Some servers fail on null.
        Empty = "empty",
        /// Some refuse a member that is null.
        Omit = "omit",
    }
}

vocabulary! {
    /// What becomes of a message or a tool result without any text.
    pub enum EmptyText {
        Keep = "keep",
        /// The provider refuses empty content: say that it is empty.
        Fill = "fill",
    }
}

vocabulary! {
    /// What becomes of system messages after the start of the conversation.
    pub enum LateSystem {
        Keep = "keep",
        /// The provider wants system messages first, or moves them there. With `wire: messages` they are marked as what
        /// they are.
        User = "user",
    }
}

vocabulary! {
    /// Whether messages of one role may follow each other.
    pub enum Turns {
        Free = "free",
        /// Neighbours of one role become one message.
        Merged = "merged",
    }
}

vocabulary! {
    /// What may follow a tool's result.
    pub enum AfterTool {
        Any = "any",
        /// Only the assistant; a short message of it is put between.
        Assistant = "assistant",
    }
}

vocabulary! {
    /// Whose message may be the last.
    pub enum LastMessage {
        Any = "any",
        /// The user's, or a tool's result: after anybody else's the user says to go on. So it always is with `wire: messages`.
        User = "user",
    }
}

vocabulary! {
    /// Which call ids the provider takes.
    pub enum CallIds {
        Any = "any",
        /// Letters, digits, `_` and `-`, at most 64.
        Safe = "safe",
        /// Nine letters and digits.
        Alnum9 = "alnum9",
    }
}

vocabulary! {
    /// Which messages are marked for a cache that must be asked for.
    pub enum CacheMarks {
        None = "none",
        /// The last of the leading system messages, the last message, and the one that the turn before ended with.
        All = "all",
        /// The same, but no result of a tool: what a gateway makes of a mark there may be refused.
        NotTools = "not_tools",
    }
}

vocabulary! {
    /// Which images the model sees.
    pub enum ImageInput {
        None = "none",
        /// Data URLs only.
        Data = "data",
        All = "all",
    }
}

vocabulary! {
    /// Where an image in a tool's result goes, if the model sees images at all.
    pub enum ToolImages {
        /// Into a user message after the results.
        Hoist = "hoist",
        /// It may stay in the tool's message.
        Native = "native",
    }
}

vocabulary! {
    /// What is done about something that the provider cannot do.
    pub enum Lacking {
        /// Do the next best thing, with a note.
        Degrade = "degrade",
        /// Refuse the request.
        Reject = "reject",
    }
}

vocabulary! {
    /// The forms of `tool_choice` in the chat request.
    pub enum ChoiceKind {
        Auto = "auto",
        None = "none",
        Required = "required",
        Function = "function",
    }
}

vocabulary! {
    /// The word for "some tool must be called".
    pub enum RequiredWord {
        Required = "required",
        Any = "any",
    }
}

vocabulary! {
    /// A choice that forces a call, on a model that thinks.
    pub enum ForcedWhileThinking {
        Allowed = "allowed",
        /// Not both: thinking is switched off for this call.
        DropThinking = "drop_thinking",
        /// Not both: the choice becomes `auto`.
        Degrade = "degrade",
        /// Not both: the request is refused.
        Reject = "reject",
    }
}

vocabulary! {
    /// When `parallel_tool_calls` is sent.
    pub enum Parallel {
        /// Only a `false` needs saying.
        WhenFalse = "when_false",
        /// The provider's default is not true.
        Always = "always",
    }
}

vocabulary! {
    /// Tools that somebody else than the client runs.
    pub enum Hosted {
        WebSearch = "web_search",
        FileSearch = "file_search",
        CodeInterpreter = "code_interpreter",
        ImageGeneration = "image_generation",
        Computer = "computer",
        Mcp = "mcp",
    }
}

vocabulary! {
    /// Forms of input that a custom tool may have there, as a tool of that kind.
    pub enum CustomForm {
        /// Any text.
        Text = "text",
        /// What a Lark grammar describes.
        Lark = "lark",
        /// What a regular expression matches.
        Regex = "regex",
    }
}

vocabulary! {
    /// What a tool's JSON schema must not have there, and what is done about it.
    pub enum SchemaRule {
        /// `$ref` must be alone: its neighbours are left out.
        RefAlone = "ref_alone",
        /// `items` is one schema: a tuple becomes its first.
        NoTuples = "no_tuples",
        /// `enum` holds strings.
        EnumStrings = "enum_strings",
        /// `type` is one name: the first that is not null.
        NoTypeArrays = "no_type_arrays",
        /// `strict` is not known there.
        NoStrict = "no_strict",
        /// `anyOf`, `oneOf` and `allOf` go from the root.
        PlainRoot = "plain_root",
        /// Only what is a schema by draft 2020-12: older tuples and exclusive limits are written as it has them; keywords
        /// whose values it does not have, types that there are not and patterns that only other languages than ECMAScript
        /// have go, and what would forbid more without them.
        Draft2020 = "draft_2020",
        /// Names of the root's properties have letters, digits, `_`, `.` and `-`, at most 64: others are renamed, and the
        /// arguments of calls are renamed back.
        PlainKeys = "plain_keys",
    }
}

vocabulary! {
    /// What a response format cannot be combined with.
    pub enum Exclusion {
        Tools = "tools",
        Stream = "stream",
    }
}

vocabulary! {
    /// `reasoning.effort`, from none to all.
    pub enum Effort {
        None = "none",
        Minimal = "minimal",
        Low = "low",
        Medium = "medium",
        High = "high",
        Xhigh = "xhigh",
        Max = "max",
    }
}

vocabulary! {
    /// How an effort is told.
    pub enum EffortField {
        /// `reasoning_effort: …`; with `wire: messages`, `output_config: {effort: …}`.
        Native = "reasoning_effort",
        /// `reasoning: {effort: …}`.
        Object = "reasoning",
        /// By members of the body: the ladder has a JSON object for each.
        Members = "members",
        /// It is not: thinking is on or off.
        None = "none",
    }
}

vocabulary! {
    /// What is said about thinking when the request says nothing.
    pub enum Thinking {
        /// Nothing: the provider has its own default.
        Unsaid = "unsaid",
        On = "on",
        Off = "off",
    }
}

vocabulary! {
    /// Which messages carry their reasoning back.
    pub enum Replay {
        Never = "never",
        /// Those that call tools.
        Tools = "tools",
        Always = "always",
    }
}

vocabulary! {
    /// The member that carries it.
    pub enum ReplayField {
        ReasoningContent = "reasoning_content",
        Reasoning = "reasoning",
        /// A `thinking` part before the text.
        ThinkingParts = "thinking_parts",
        /// Only what came with it, as it came (`reasoning_details`, signatures).
        Bag = "bag",
        /// The blocks in which it came, as they came and where they were (`wire: messages`).
        Blocks = "blocks",
    }
}

vocabulary! {
    /// The member that tells users apart.
    pub enum UserField {
        /// `user` and `safety_identifier` keep their names.
        Own = "own",
        User = "user",
        UserId = "user_id",
    }
}

vocabulary! {
    /// The member for `prompt_cache_key`.
    pub enum CacheKeyField {
        PromptCacheKey = "prompt_cache_key",
        PromptCacheIsolationKey = "prompt_cache_isolation_key",
    }
}

vocabulary! {
    /// Whose ids the items of a native answer have.
    pub enum ItemIds {
        /// New ones. They mean nothing to the provider, so items go back without.
        Ours = "ours",
        /// Its own, which items keep on the way back.
        Theirs = "theirs",
    }
}

vocabulary! {
    /// What a model's text is cut into tokens with.
    pub enum Tokenizer {
        /// Not known here: tokens are estimated, and learned from what the provider reports.
        Estimate = "estimate",
        O200k = "o200k",
        /// The tokens of `o200k`, in the open chat form called harmony.
        O200kHarmony = "o200k_harmony",
        Cl100k = "cl100k",
    }
}

//! The words for how a far side wants its requests.

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
        /// The far side refuses `stream_options`, or sends usage unasked.
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
    }
}

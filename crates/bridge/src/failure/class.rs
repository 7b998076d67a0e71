//! The classes of failure, each with its codes.

wire::codes! {
    /// What kind of failure it is. The name is the domain code: in logs, traces and the `x-godex-error` header.
    pub enum FailureClass {
        /// The provider refused the key that the operator configured, or answered 403 for a reason that only its words tell.
        Auth = "provider_auth" => "The operator checks the key of that provider (`godex config check`, `godex probe`).";
        /// The account at the provider has no credit or quota left.
        Quota = "provider_quota" => "The operator pays or raises the limit; another provider can be a fallback.";
        /// The provider asks to slow down.
        RateLimit = "upstream_rate_limit" => "Retry, not before the seconds in `Retry-After` are over.";
        /// The provider is too busy to answer.
        Overloaded = "upstream_overloaded" => "Retry later; a fallback helps.";
        /// The input and the output that was asked for are more than the model's context holds.
        ContextOverflow = "context_length_exceeded" => "Shorten the input, or use a model with a larger context.";
        /// The provider refused the request as it was sent to it.
        InvalidRequest = "upstream_invalid_request" => "The message has the provider's words. If the request is right, the provider's spec is not: `godex probe` shows what it takes.";
        /// The provider refused the content.
        ContentPolicy = "upstream_content_policy" => "Change the input; repeating it does not help.";
        /// The provider does not have that model.
        ModelNotFound = "model_not_found" => "Name a model that `GET /v1/models` lists; the operator checks the alias.";
        /// The provider failed and said so.
        Server = "upstream_error" => "Retry; if it stays, the message has the provider's words.";
        /// No connection to the provider could be made.
        Unreachable = "upstream_unreachable" => "Retry; the operator checks `base_url`, DNS, proxy and certificates.";
        /// The provider did not answer in time.
        Timeout = "upstream_timeout" => "Retry; for slow models the operator raises the provider's `timeouts`.";
        /// The answer broke off.
        Truncated = "upstream_truncated" => "Retry.";
        /// The answer was not what the provider's API says.
        Protocol = "upstream_protocol" => "The operator checks `base_url`: another service may answer there.";
        /// The answer was well-formed and had nothing in it.
        Empty = "upstream_empty" => "Retry, or raise `max_output_tokens`.";
        /// The answer was whole, and not in the format that was asked for.
        InvalidOutput = "invalid_output_format" => "Retry, simplify the schema, or use a model that follows formats.";
        /// An MCP server that the request needs does not say which tools it has.
        McpServer = "mcp_server_unavailable" => "Look at the server: `godex mcp check` for one that the operator declares. One that is `optional` is left out instead.";
        /// In the background only: the API key that the response was asked for with was revoked, or has expired, before it ran.
        KeyEnded = "api_key_ended" => "Ask again with a key that works.";
        /// The server was stopped before the response was whole.
        Shutdown = "server_shutdown" => "Retry: another instance answers, or this one when it is back.";
        /// The process that made the response ended before it was whole. What the provider was asked is not asked again by itself: it may have cost something.
        Lost = "server_restarted" => "Retry if what the model did so far may be done again.";
    }
}

impl FailureClass {
    /// The domain code.
    pub const fn code(self) -> &'static str {
        self.name()
    }

    /// `error.code` inside a failed response: the codes that clients know how to act on.
    pub const fn response_code(self) -> &'static str {
        match self {
            Self::Quota => "insufficient_quota",
            Self::RateLimit => "rate_limit_exceeded",
            Self::ContextOverflow => "context_length_exceeded",
            Self::InvalidRequest | Self::ContentPolicy => "invalid_prompt",
            Self::ModelNotFound => "model_not_found",
            Self::Overloaded => "server_is_overloaded",
            Self::InvalidOutput => "invalid_output_format",
            Self::McpServer => "http_error",
            Self::KeyEnded => "invalid_api_key",
            Self::Shutdown => "server_shutdown",
            Self::Lost => "server_restarted",
            Self::Auth
            | Self::Server
            | Self::Unreachable
            | Self::Timeout
            | Self::Truncated
            | Self::Protocol
            | Self::Empty => "server_error",
        }
    }

    /// `error.type`.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::RateLimit => "rate_limit_error",
            Self::Quota => "insufficient_quota",
            Self::McpServer => "external_connector_error",
            Self::ContextOverflow
            | Self::InvalidRequest
            | Self::ContentPolicy
            | Self::ModelNotFound
            | Self::KeyEnded => "invalid_request_error",
            Self::Auth
            | Self::Overloaded
            | Self::Server
            | Self::Unreachable
            | Self::Timeout
            | Self::Truncated
            | Self::Protocol
            | Self::Empty
            | Self::InvalidOutput
            | Self::Shutdown
            | Self::Lost => "server_error",
        }
    }
}

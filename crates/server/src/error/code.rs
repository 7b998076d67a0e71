//! Every error code that a request can be answered with: one table that the program reads and that
//! `docs/errors.md` is made of. Nothing else can make a code.

use bridge::FailureClass;
use http::StatusCode;
use wire::json::InvalidCode;

/// Declares [`Code`]: the server's own codes, one to a line, and those of values and of providers, which have tables
/// of their own. A line has the status, the domain code and, where it is another, `error.code` (`None`: null, because
/// OpenAI says it in words alone); its comment says when the code is sent, the text after `=>` what to do then.
macro_rules! codes {
    ($(
        $(#[doc = $when:literal])+
        $code:ident($status:ident, $domain:literal $(, $wire:expr)?) => $remedy:literal;
    )+) => {
        /// Why a request was answered with an error.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Code {
            $($(#[doc = $when])+ $code,)+
            /// A value in the request does not fit.
            Invalid(InvalidCode),
            /// The provider failed.
            Upstream(FailureClass),
        }

        impl Code {
    /// Whether a turn that is refused so waits in the background.
    pub(crate) const fn waits_for_place(self) -> bool {
        matches!(
            self,
            Self::TurnsAtOnce | Self::TokensPerMinute | Self::BudgetInUse | Self::Overloaded | Self::BodyBytes
        )
    }

            /// The server's own, in the order of the documentation.
            const OWN: &'static [Self] = &[$(Self::$code),+];

            const fn facts(self) -> Facts {
                match self {
                    $(Self::$code => {
                        let facts = Facts {
                            status: StatusCode::$status,
                            domain: $domain,
                            wire: Some($domain),
                            when: concat!($($when),+).trim_ascii(),
                            remedy: $remedy,
                        };
                        $(let facts = Facts { wire: $wire, ..facts };)?
                        facts
                    })+
                    Self::Invalid(code) => of_value(code),
                    Self::Upstream(class) => of_provider(class),
                }
            }
        }
    };
}

/// What is known about a code.
#[derive(Debug, Clone, Copy)]
struct Facts {
    status: StatusCode,
    domain: &'static str,
    wire: Option<&'static str>,
    when: &'static str,
    remedy: &'static str,
}

codes! {
    /// The body is not JSON.
    InvalidJson(BAD_REQUEST, "invalid_json", None) => "Mend the body; the message has the line and column.";
    /// The body is not UTF-8.
    InvalidUtf8(BAD_REQUEST, "invalid_utf8", None) => "Send the body as UTF-8.";
    /// The body is JSON, but no object.
    InvalidBody(BAD_REQUEST, "invalid_body", None) => "Send an object.";
    /// The request is well-formed and cannot be done, such as cancelling a response that does not run in the background.
    InvalidRequest(BAD_REQUEST, "invalid_request", None) => "Read the message.";
    /// The request has two parameters of which only one may be there.
    MutuallyExclusiveParameters(BAD_REQUEST, "mutually_exclusive_parameters") => "Remove one of the two.";
    /// The body broke off.
    RequestAborted(BAD_REQUEST, "request_aborted") => "Retry; if it stays, look at the proxy before godex.";
    /// The body has a `Content-Encoding` that is not taken.
    UnsupportedContentEncoding(BAD_REQUEST, "unsupported_content_encoding") => "Send the body plain, or as gzip or zstd.";
    /// The body is not in the encoding that its `Content-Encoding` says.
    InvalidContentEncoding(BAD_REQUEST, "invalid_content_encoding") => "Mend the client's compression, or send the body plain.";
    /// The request has no `Host` header.
    MissingHost(BAD_REQUEST, "missing_host") => "Send one.";
    /// The request names two different hosts.
    InvalidHost(BAD_REQUEST, "invalid_host") => "Send one host.";
    /// A header that may be there once is there more often.
    InvalidHeader(BAD_REQUEST, "invalid_header") => "Send the header once.";
    /// The `Host` is none that the server answers to: a guard against web pages that rebind DNS.
    HostNotAllowed(FORBIDDEN, "host_not_allowed") => "The operator adds the name to `server.allowed_hosts`.";
    /// A web page of another origin sent the request.
    OriginNotAllowed(FORBIDDEN, "origin_not_allowed") => "The operator adds the origin to `server.cors.origins`.";
    /// The request shows no API key, and needs one.
    MissingApiKey(UNAUTHORIZED, "missing_api_key", None) => "Send `Authorization: Bearer KEY`; the operator makes keys with `godex keys create`.";
    /// The API key is not known: it never was, was revoked, or is mistyped. Or the token is none that is taken.
    InvalidApiKey(UNAUTHORIZED, "invalid_api_key") => "Check the key; the operator makes another with `godex keys create`.";
    /// The API key or the token was good until a while ago.
    ExpiredApiKey(UNAUTHORIZED, "expired_api_key", Some("invalid_api_key")) => "Get another; the operator makes one with `godex keys rotate`.";
    /// The token is good and does not say whose it is.
    TenantMissing(FORBIDDEN, "tenant_missing") => "Whoever issues the tokens adds the claim that `oidc.tenant_claim` names.";
    /// The API key may not ask this model.
    ModelNotAllowed(FORBIDDEN, "model_not_allowed", Some("model_not_found")) => "Name a model that `GET /v1/models` lists; the operator says which ones a key may use.";
    /// The API key may not use this hosted tool, which the request or what it continues declares, or a stored prompt may have.
    ToolNotAllowed(FORBIDDEN, "tool_not_allowed") => "Leave the tool out; the operator says which ones a key may use.";
    /// The API keys cannot be read, and what is remembered of them is too old.
    KeysUnavailable(SERVICE_UNAVAILABLE, "keys_unavailable") => "Retry; the operator looks at the log and the database. `limits.key_grace` is how long keys are remembered.";
    /// Admin listener and `/metrics`: the token is missing, or another one.
    InvalidAdminToken(UNAUTHORIZED, "invalid_admin_token") => "Send `admin.token` as `Authorization: Bearer TOKEN`.";
    /// Admin listener only: there is no API key of that name or id.
    ApiKeyNotFound(NOT_FOUND, "api_key_not_found") => "Take one that `godex keys list` shows.";
    /// Admin listener only: there is an API key of that name, or the key is declared in `godex.yaml`, or it still works.
    ApiKeyConflict(CONFLICT, "api_key_conflict") => "Read the message.";
    /// Admin listener only: the tenant is being erased already, or its requests did not end in time.
    TenantBusy(CONFLICT, "tenant_busy") => "Try again.";
    /// Admin listener only: the new configuration cannot be used.
    ReloadFailed(BAD_REQUEST, "reload_failed") => "Mend the configuration; the message has the lines.";
    /// Admin listener only: no traces are kept.
    TracesOff(NOT_FOUND, "traces_off") => "Set `trace.enabled`, and look at the log for why their file cannot be opened.";
    /// Admin listener only: there is no such trace, or not any more.
    TraceNotFound(NOT_FOUND, "trace_not_found") => "Take one that `godex traces` lists; `trace.ttl` and `trace.max_bytes` say how long they are kept.";
    /// There is no such path.
    NotFound(NOT_FOUND, "not_found") => "Check the client's base URL: it ends in `/v1`.";
    /// The path is there, but not for this method.
    MethodNotSupported(METHOD_NOT_ALLOWED, "method_not_supported") => "Use a method that the `Allow` header names.";
    /// The name of the model is empty or half a `provider/model`, or `GET /v1/models/NAME` asks for one that is not listed.
    ModelNotFound(NOT_FOUND, "model_not_found") => "Name a model that `GET /v1/models` lists.";
    /// The key, or its tenant, has a budget, and nobody has said what the model costs.
    ModelNotPriced(FORBIDDEN, "model_not_priced") => "Ask for a model with a price; the operator says prices in `providers.NAME.prices`.";
    /// The budget of the key, or of its tenant, is spent.
    BudgetSpent(TOO_MANY_REQUESTS, "budget_spent", Some("insufficient_quota")) => "Wait until the period that the message names is over, or ask the operator for a larger budget.";
    /// The body did not arrive in time.
    RequestTimeout(REQUEST_TIMEOUT, "request_timeout") => "Retry; the line may be too slow for a body of this size.";
    /// The body is larger than is taken.
    RequestTooLarge(PAYLOAD_TOO_LARGE, "request_too_large") => "Send less; the operator can raise `server.max_body_bytes`.";
    /// The body is not `application/json`, or does not say what it is.
    UnsupportedContentType(UNSUPPORTED_MEDIA_TYPE, "unsupported_content_type") => "Send `Content-Type: application/json`.";
    /// A request to become a WebSocket is not as the protocol wants it.
    InvalidHandshake(BAD_REQUEST, "invalid_websocket_handshake") => "Use a client's WebSocket library; look at the proxy before godex.";
    /// A WebSocket of another version than 13 was asked for, or another protocol.
    WebsocketNotSupported(UPGRADE_REQUIRED, "websocket_not_supported") => "Use version 13, or `POST /v1/responses` with `stream: true`.";
    /// On a WebSocket: the message is of no type that clients send.
    UnknownMessage(BAD_REQUEST, "unknown_message_type") => "Send `response.create`.";
    /// On a WebSocket: the `stream_id` is none.
    InvalidStreamId(BAD_REQUEST, "invalid_stream_id") => "Take 1 to 256 letters, digits, underscores, hyphens and periods, or none.";
    /// On a WebSocket: the connection has used 32 different `stream_id`s.
    StreamLimit(BAD_REQUEST, "websocket_stream_limit_reached") => "Use one of them again, or open another connection.";
    /// On a WebSocket: the connection is as old as it may be, and closes.
    ConnectionLimit(BAD_REQUEST, "websocket_connection_limit_reached") => "Open another connection; what was not stored must be sent again. The operator can raise `server.websocket.lifetime`.";
    /// On a WebSocket: more requests wait on the connection than it may keep.
    QueueFull(TOO_MANY_REQUESTS, "websocket_queue_full") => "Wait until some of them are answered, or open another connection.";
    /// There is no stored response of that id: it never was, was not stored, was deleted, or has expired.
    ResponseNotFound(NOT_FOUND, "response_not_found", None) => "Check the id, `store` of the request that made it, and `session.ttl`.";
    /// A stored response was asked for as a stream, and was not made to be streamed again.
    ResponseNotStreamable(BAD_REQUEST, "response_not_streamable", None) => "Ask for it without `stream`; make it with `background` and `stream`, or the operator sets `session.resume_foreground`.";
    /// As many background responses wait as may.
    BackgroundQueueFull(TOO_MANY_REQUESTS, "background_queue_full", Some("rate_limit_exceeded")) => "Retry later; the operator can raise `session.background`.";
    /// A request with the same `Idempotency-Key` is being answered, or has taken the place of this one, which was held up for too long.
    IdempotencyKeyInUse(CONFLICT, "idempotency_key_in_use") => "Retry in a moment; clients do so by themselves.";
    /// The `Idempotency-Key` was used for another request.
    IdempotencyKeyReused(BAD_REQUEST, "idempotency_key_reused") => "Use a new key for each request.";
    /// The `Idempotency-Key` is empty, too long, or not plain text.
    InvalidIdempotencyKey(BAD_REQUEST, "invalid_idempotency_key") => "Send 1 to 255 visible ASCII characters.";
    /// An approval answers no request that is in the context, or one that this server did not make for this tenant, that was changed, or that is too old; or it is there twice.
    McpApprovalInvalid(BAD_REQUEST, "mcp_approval_invalid", None) => "Send the `mcp_approval_request` as it came, or continue the response that has it, with one `mcp_approval_response`; else let the model ask again.";
    /// The approval was used by another response, which has tried the call.
    McpApprovalUsed(BAD_REQUEST, "mcp_approval_used") => "Continue the response that the message names, if it did not fail; else let the model ask again.";
    /// There is no conversation of that id.
    ConversationNotFound(NOT_FOUND, "conversation_not_found", None) => "Check the id.";
    /// There is no item of that id.
    ItemNotFound(NOT_FOUND, "item_not_found", None) => "Send the item itself in place of its id.";
    /// Another request is writing to the conversation.
    ConversationLocked(BAD_REQUEST, "conversation_locked") => "Retry in a few seconds; use one conversation in one request at a time.";
    /// There is no response with the id in `previous_response_id`. The status is 404 if `session.unknown_previous_response_status` says so.
    ChainNotFound(BAD_REQUEST, "session.chain.not_found", Some("previous_response_not_found")) => "Send the whole history as `input`.";
    /// A response before the one in `previous_response_id` was deleted. The status is configured as above.
    ChainDeletedAncestor(BAD_REQUEST, "session.chain.deleted_ancestor", Some("previous_response_not_found")) => "Send the whole history as `input`.";
    /// The chain of previous responses is longer than is allowed.
    ChainDepthExceeded(BAD_REQUEST, "session.chain.depth_exceeded", Some("chain_depth_exceeded")) => "Start anew with the history as `input`; the operator can raise `session.chain.max_depth`.";
    /// The response in `previous_response_id` did not come to a good end.
    ChainUnavailable(BAD_REQUEST, "session.chain.unavailable", Some("previous_response_unavailable")) => "Continue from the response before it.";
    /// What the turn continues was deleted while it ran; the answer is not stored.
    DeletedMeanwhile(NOT_FOUND, "session.deleted_meanwhile", Some("deleted_meanwhile")) => "Send the whole history as `input`.";
    /// The store is full.
    StorageFull(SERVICE_UNAVAILABLE, "storage_full") => "The operator frees space on the disk, or shortens `session.ttl`; `store: false` works meanwhile.";
    /// The store cannot be reached, or is too busy.
    StorageUnavailable(SERVICE_UNAVAILABLE, "storage_unavailable") => "Retry; the operator looks at the log and the database.";
    /// The store has rows that cannot be read.
    StorageDamaged(INTERNAL_SERVER_ERROR, "storage_damaged") => "The operator restores the database from a backup.";
    /// The store gave an answer that cannot be.
    StorageError(INTERNAL_SERVER_ERROR, "storage_error") => "Retry; if it stays, report it with the log.";
    /// The key, or its tenant, has made as many requests in the last minute as it may (`rpm`).
    RequestsPerMinute(TOO_MANY_REQUESTS, "requests_per_minute", Some("rate_limit_exceeded")) => "Wait as long as `Retry-After` says; the operator can raise the limit.";
    /// The key, or its tenant, has used as many tokens in the last minute as it may (`tpm`), or would with this request.
    TokensPerMinute(TOO_MANY_REQUESTS, "tokens_per_minute", Some("rate_limit_exceeded")) => "Wait as long as `Retry-After` says; the operator can raise the limit.";
    /// The request alone has more tokens than the key, or its tenant, may use in a minute (`tpm`), or more bytes than it may hold (`body_bytes`).
    RequestBeyondLimit(TOO_MANY_REQUESTS, "request_beyond_limit", Some("rate_limit_exceeded")) => "Send less: no wait helps; the operator can raise the limit.";
    /// The key, or its tenant, runs as many requests as it may at the same time (`concurrency`).
    TurnsAtOnce(TOO_MANY_REQUESTS, "turns_at_once", Some("rate_limit_exceeded")) => "Wait until some of them are answered; the operator can raise the limit.";
    /// What is left of the budget of the key, or of its tenant, is what its running requests may cost.
    BudgetInUse(TOO_MANY_REQUESTS, "budget_in_use", Some("rate_limit_exceeded")) => "Wait until some of them are answered; the operator can give a larger budget.";
    /// The requests of the key, or of its tenant, hold as many bytes as they may together (`body_bytes`).
    BodyBytes(TOO_MANY_REQUESTS, "body_bytes", Some("rate_limit_exceeded")) => "Wait until some of them are answered; the operator can raise the limit.";
    /// The server runs as many requests as it can, or is short of memory or of file descriptors.
    Overloaded(SERVICE_UNAVAILABLE, "overloaded") => "Retry in a moment; the operator adds instances, or raises `limits.turns`, `limits.memory` or the limit of open files.";
    /// The requests that are being served hold as many bytes as they may together.
    TooManyBytesInFlight(SERVICE_UNAVAILABLE, "too_many_bytes_in_flight") => "Retry in a moment; the operator can raise `limits.body_bytes_in_flight`.";
    /// What is stored for the caller's tenant is being erased.
    TenantClosed(SERVICE_UNAVAILABLE, "tenant_closed") => "Retry when the operator is done.";
    /// The server is stopping and ended the request.
    ShuttingDown(SERVICE_UNAVAILABLE, "shutting_down") => "Retry: another instance answers, or this one when it is back.";
    /// `GET /ready` only: the server is stopping and takes no more work.
    Draining(SERVICE_UNAVAILABLE, "draining") => "Nothing: load balancers stop sending to it.";
}

impl Code {
    /// Every one: the server's own, those of values, those of providers.
    pub fn all() -> impl Iterator<Item = Self> {
        let values = InvalidCode::ALL.iter().copied().map(Self::Invalid);
        let providers = FailureClass::ALL.iter().copied().map(Self::Upstream);
        Self::OWN.iter().copied().chain(values).chain(providers)
    }

    /// The status; for `previous_response_id` the operator may choose another.
    pub const fn status(self) -> StatusCode {
        self.facts().status
    }

    /// `error.code`, where no provider's own is passed on; none where OpenAI has none.
    pub const fn wire(self) -> Option<&'static str> {
        self.facts().wire
    }

    /// The domain code, for the `x-godex-error` header and the log. Only it has dots.
    pub const fn domain(self) -> &'static str {
        self.facts().domain
    }

    /// When it is sent.
    pub const fn when(self) -> &'static str {
        self.facts().when
    }

    /// What to do about it.
    pub const fn remedy(self) -> &'static str {
        self.facts().remedy
    }

    /// `error.type`.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Upstream(class) => class.kind(),
            Self::RequestsPerMinute | Self::TurnsAtOnce | Self::BudgetInUse | Self::BodyBytes => "requests",
            Self::TokensPerMinute | Self::RequestBeyondLimit => "tokens",
            Self::BudgetSpent => "insufficient_quota",
            code if code.status().is_server_error() => "server_error",
            code if code.status() == StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            _ => "invalid_request_error",
        }
    }

    /// Whether it will be the same in a minute, though its status is one that clients retry.
    pub const fn lasts(self) -> bool {
        use FailureClass::{Auth, Quota};
        matches!(
            self,
            Self::StorageDamaged | Self::RequestBeyondLimit | Self::BudgetSpent | Self::Upstream(Quota | Auth)
        )
    }
}

const fn of_value(code: InvalidCode) -> Facts {
    let (domain, when, remedy) = (code.name(), code.when(), code.remedy());
    let wire = match code {
        InvalidCode::UnknownCall => None,
        _ => Some(domain),
    };
    Facts { status: StatusCode::BAD_REQUEST, domain, wire, when, remedy }
}

const fn of_provider(class: FailureClass) -> Facts {
    let (domain, when, remedy) = (class.code(), class.when(), class.remedy());
    let wire = match class {
        FailureClass::RateLimit => "rate_limit_exceeded",
        FailureClass::Quota => "insufficient_quota",
        FailureClass::McpServer => "http_error",
        FailureClass::KeyEnded => "invalid_api_key",
        _ => domain,
    };
    Facts { status: upstream_status(class), domain, wire: Some(wire), when, remedy }
}

/// The class is kept; the operator's faults are not the client's.
const fn upstream_status(class: FailureClass) -> StatusCode {
    use FailureClass as Class;
    match class {
        Class::InvalidRequest | Class::ContentPolicy | Class::ContextOverflow => StatusCode::BAD_REQUEST,
        Class::ModelNotFound => StatusCode::NOT_FOUND,
        Class::KeyEnded => StatusCode::UNAUTHORIZED,
        Class::RateLimit | Class::Quota => StatusCode::TOO_MANY_REQUESTS,
        Class::Overloaded | Class::Shutdown => StatusCode::SERVICE_UNAVAILABLE,
        Class::Timeout => StatusCode::GATEWAY_TIMEOUT,
        Class::McpServer => StatusCode::FAILED_DEPENDENCY,
        Class::Auth
        | Class::Server
        | Class::Unreachable
        | Class::Truncated
        | Class::Protocol
        | Class::Empty
        | Class::InvalidOutput
        | Class::Lost => StatusCode::BAD_GATEWAY,
    }
}

impl From<InvalidCode> for Code {
    fn from(code: InvalidCode) -> Self {
        Self::Invalid(code)
    }
}

impl From<FailureClass> for Code {
    fn from(class: FailureClass) -> Self {
        Self::Upstream(class)
    }
}

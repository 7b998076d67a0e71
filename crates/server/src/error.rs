//! The only place that knows OpenAI's error object and which status goes with what.

mod code;
mod surface;

use std::borrow::Cow;

use bridge::{Failure, FailureClass};
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use wire::json::{Invalid, InvalidCode, ObjectWriter};

pub use code::Code;
pub(crate) use surface::{ErrorSurface, Which};

/// An answer that is an error: `{"error": {message, type, param, code}}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: Code,
    /// `error.code`: OpenAI's, else our own or a provider's that looks like one; none where OpenAI has none.
    pub(crate) wire: Option<Cow<'static, str>>,
    pub(crate) param: Option<Box<str>>,
    pub(crate) message: Box<str>,
    pub(crate) retry_after: Option<u32>,
    /// `Allow`, with 405.
    pub(crate) allow: Option<Box<str>>,
}

impl ApiError {
    /// The code says the status and the type.
    pub(crate) fn new(code: impl Into<Code>, message: impl Into<String>) -> Self {
        let code = code.into();
        let status = code.status();
        Self {
            status,
            code,
            wire: code.wire().map(Cow::Borrowed),
            param: None,
            message: message.into().into(),
            retry_after: (status == StatusCode::SERVICE_UNAVAILABLE).then_some(1),
            allow: None,
        }
    }

    pub(crate) fn bad_request(code: impl Into<Code>, message: impl Into<String>) -> Self {
        Self::new(code, message)
    }

    #[must_use]
    pub(crate) fn with_param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into().into());
        self
    }

    /// A body that is JSON and not what is wanted there.
    pub(crate) fn invalid_body(invalid: Invalid) -> Self {
        Self::new(Code::InvalidBody, invalid.at("body").to_string())
    }

    pub(crate) fn invalid(invalid: &Invalid) -> Self {
        let param = (!invalid.path.is_empty()).then(|| invalid.path.as_str().into());
        Self { param, ..Self::new(invalid.code(), invalid.to_string()) }
    }

    pub(crate) fn forbidden(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, message)
    }

    pub(crate) fn not_found(method: &http::Method, path: &str) -> Self {
        let path: String = path.chars().take(256).collect();
        Self::new(Code::NotFound, format!("Invalid URL ({method} {path})"))
    }

    pub(crate) fn method_not_allowed(method: &http::Method, allow: &str) -> Self {
        let message = format!("Not allowed to {method} here. Allowed: {allow}.");
        let error = Self::new(Code::MethodNotSupported, message);
        Self { allow: Some(allow.into()), ..error }
    }

    pub(crate) fn model_not_found(model: &str, hint: &str) -> Self {
        let message = format!("The requested model '{}' does not exist.{hint}", clip(model));
        Self::new(Code::ModelNotFound, message).with_param("model")
    }

    /// As OpenAI words it for a project: whether there is such a model is not said.
    pub(crate) fn model_not_allowed(model: &str) -> Self {
        let message = format!("This API key does not have access to model `{}`", clip(model));
        Self::new(Code::ModelNotAllowed, message)
    }

    pub(crate) fn tool_not_allowed(tool: &str) -> Self {
        let message = format!("This API key does not have access to the tool `{}`", clip(tool));
        Self::new(Code::ToolNotAllowed, message).with_param("tools")
    }

    /// For callers that may use some tools only.
    pub(crate) fn prompt_not_allowed() -> Self {
        let message = "This API key does not have access to stored prompts: they may have tools of their own.";
        Self::new(Code::ToolNotAllowed, message).with_param("prompt")
    }

    /// For callers with a budget.
    pub(crate) fn not_priced(model: &str) -> Self {
        let message = format!(
            "This key has a budget, and the price of the model '{}' is not known. The operator can say it in `prices`.",
            clip(model)
        );
        Self::new(Code::ModelNotPriced, message).with_param("model")
    }

    /// `until`: when there is something again, in words; none: never by itself.
    pub(crate) fn insufficient_quota(whose: &str, until: Option<&str>) -> Self {
        let until = until.map(|until| format!(" It begins anew on {until}.")).unwrap_or_default();
        let message = format!(
            "You exceeded your current quota, please check your plan and billing details. The budget of this {whose} is \
             spent.{until}"
        );
        Self::new(Code::BudgetSpent, message)
    }

    /// It is promised to what runs, and may be free again when that is over.
    pub(crate) fn budget_in_use(whose: &str) -> Self {
        let message = format!(
            "What is left of the budget of this {whose} is what its running requests may cost. Please try again when they \
             are answered."
        );
        Self { retry_after: Some(1), ..Self::new(Code::BudgetInUse, message) }
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("The request body is larger than the {limit} bytes that are accepted.");
        Self::new(Code::RequestTooLarge, message)
    }

    /// Each of them becomes something in memory.
    pub(crate) fn too_many_values(count: usize) -> Self {
        let message =
            format!("The request body has {count} JSON values, which is more than the server has memory for.");
        Self::new(Code::RequestTooLarge, message)
    }

    /// Empty: the request does not say.
    pub(crate) fn unsupported_content_type(found: &str) -> Self {
        let message = match found {
            "" => "The request has a body but no Content-Type header. This API takes 'application/json'.".to_owned(),
            _ => format!("Unsupported content type: '{found}'. This API takes 'application/json'."),
        };
        Self::new(Code::UnsupportedContentType, message)
    }

    pub(crate) fn request_timeout() -> Self {
        Self::new(Code::RequestTimeout, "The request body did not arrive in time.")
    }

    pub(crate) fn upgrade_required() -> Self {
        let message = "This path can become a WebSocket of version 13, and nothing else.";
        Self::new(Code::WebsocketNotSupported, message)
    }

    /// Of what the operator names, which may be the number of a trace.
    pub(crate) fn trace_not_found(id: &str) -> Self {
        if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_digit()) {
            return Self::response_not_found(id);
        }
        let message = format!("There is no trace with the number {}; `godex traces` lists them.", clip(id));
        Self { message: message.into(), ..Self::response_not_found(id) }
    }

    pub(crate) fn response_not_found(id: &str) -> Self {
        let message = format!("Response with id '{}' not found.", clip(id));
        Self::new(Code::ResponseNotFound, message)
    }

    pub(crate) fn conversation_not_found(id: &str) -> Self {
        let message = format!("Conversation with id '{}' not found.", clip(id));
        Self::new(Code::ConversationNotFound, message)
    }

    pub(crate) fn item_not_found(id: &str) -> Self {
        let message = format!(
            "Item with id '{}' not found. Items are not persisted when `store` is set to false. Try again with \
             `store` set to true, or remove this item from your input.",
            clip(id)
        );
        Self::new(Code::ItemNotFound, message)
    }

    pub(crate) fn conversation_item_not_found(conversation: &str, id: &str) -> Self {
        let message = format!("Item with id '{}' not found in conversation '{}'.", clip(id), clip(conversation));
        Self::new(Code::ItemNotFound, message)
    }

    /// `status` is the operator's choice: 400 as OpenAI has it, or 404.
    fn previous(code: Code, message: String, status: u16) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(code.status());
        Self { status, ..Self::new(code, message).with_param("previous_response_id") }
    }

    pub(crate) fn previous_not_found(id: &str, status: u16) -> Self {
        let message = format!("Previous response with id '{}' not found.", clip(id));
        Self::previous(Code::ChainNotFound, message, status)
    }

    pub(crate) fn ancestor_deleted(id: &str, status: u16) -> Self {
        let message =
            format!("Previous response with id '{}' cannot be continued: a response before it was deleted.", clip(id));
        Self::previous(Code::ChainDeletedAncestor, message, status)
    }

    pub(crate) fn chain_too_deep(limit: u32) -> Self {
        let message = format!("The chain of previous responses is longer than the {limit} that are allowed.");
        Self::new(Code::ChainDepthExceeded, message).with_param("previous_response_id")
    }

    pub(crate) fn chain_unavailable(id: &str, status: store::Status) -> Self {
        let message = format!("Previous response with id '{}' cannot be continued: its status is {status}.", clip(id));
        Self::new(Code::ChainUnavailable, message).with_param("previous_response_id")
    }

    /// A store that failed, or refused what is nobody's fault but the request's. Never 401 or 404.
    pub(crate) fn store(error: &store::Error) -> Self {
        use store::Error;
        match error {
            Error::Locked => {
                let message =
                    "Another process is currently operating on this conversation. Please retry in a few seconds.";
                Self::new(Code::ConversationLocked, message).with_param("conversation")
            }
            Error::NoSuchCursor => {
                Self::new(InvalidCode::InvalidValue, "No item of this list has the id that 'after' names.")
                    .with_param("after")
            }
            Error::KeyLost => Self::key_in_use(),
            Error::NoRoom => Self::too_many_bytes(),
            Error::Full => Self::new(Code::StorageFull, "The session store is full."),
            Error::Unavailable(_) => Self::new(Code::StorageUnavailable, error.to_string()),
            Error::Corrupt(_) => Self::new(Code::StorageDamaged, "The session store is damaged."),
            Error::NotFound | Error::DeletedAncestor => {
                let message = "What this turn continues was deleted while it ran.";
                Self::new(Code::DeletedMeanwhile, message)
            }
            Error::TooDeep { .. }
            | Error::Conflict
            | Error::Running
            | Error::Ended { .. }
            | Error::WrongStatus { .. }
            | Error::OutOfOrder { .. }
            | Error::NoLog
            | Error::QueueFull
            | Error::Lost => Self::new(Code::StorageError, "The session store gave no usable answer."),
        }
    }

    pub(crate) fn too_many_bytes() -> Self {
        let message = "The server holds as many bytes of requests as it may. Please retry in a moment.";
        Self::new(Code::TooManyBytesInFlight, message)
    }

    /// Those of one key or tenant.
    pub(crate) fn too_many_bytes_of_one() -> Self {
        let message = "Your requests hold as many bytes as they may. Please retry when some of them are answered.";
        Self { retry_after: Some(1), ..Self::new(Code::BodyBytes, message) }
    }

    /// One alone is more than may be held.
    pub(crate) fn body_beyond_limit(limit: usize) -> Self {
        Self::new(
            Code::RequestBeyondLimit,
            format!("The request is larger than the {limit} bytes that your key may hold."),
        )
    }

    pub(crate) fn key_in_use() -> Self {
        let message = "A request with the same Idempotency-Key is being answered. Please retry in a moment.";
        Self { retry_after: Some(1), ..Self::new(Code::IdempotencyKeyInUse, message) }
    }

    pub(crate) fn key_reused() -> Self {
        Self::new(Code::IdempotencyKeyReused, "The Idempotency-Key was used for another request.")
    }

    pub(crate) fn shutting_down() -> Self {
        Self::new(Code::ShuttingDown, "The server is shutting down.")
    }

    pub(crate) fn unavailable(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, message)
    }

    /// An upstream's failure, before anything was sent: the class is kept, the operator's faults are not the
    /// client's.
    pub(crate) fn upstream(failure: &Failure) -> Self {
        use FailureClass as Class;
        let code = Code::Upstream(failure.class);
        let wire = match failure.class {
            Class::InvalidRequest => failure.upstream_code.as_deref().filter(|code| is_code(code)),
            _ => None,
        };
        let wire = wire.map(|code| Cow::Owned(code.to_owned())).or(code.wire().map(Cow::Borrowed));
        let param = match failure.class {
            Class::ContextOverflow => Some("input".into()),
            Class::ModelNotFound => Some("model".into()),
            Class::McpServer => Some("tools".into()),
            _ => None,
        };
        // Some clients give up at once on a 429 that does not say when to come back.
        let retry_after = match failure.class {
            Class::RateLimit => Some(failure.retry_after.unwrap_or(1)),
            _ => failure.retry_after,
        };
        let message = match failure.class {
            // It may be about the country, the model, anything: its words tell.
            Class::Auth if failure.by_status == Some(403) => {
                format!("The provider refused the request (403): {}", failure.shown()).into()
            }
            Class::Auth => format!("The provider refused the configured credentials: {}", failure.shown()).into(),
            _ => failure.shown().into(),
        };
        Self { status: code.status(), code, wire, param, message, retry_after, allow: None }
    }

    pub(crate) fn response(&self) -> Response<Bytes> {
        let mut body = Vec::with_capacity(256);
        let mut outer = ObjectWriter::new(&mut body);
        self.write(outer.key("error"), self.wire.as_deref());
        outer.end();
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in self.headers() {
            headers.insert(name, value);
        }
        if let Some(allow) = self.allow.as_deref().and_then(|allow| HeaderValue::from_str(allow).ok()) {
            headers.insert(header::ALLOW, allow);
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.code == Code::WebsocketNotSupported {
            headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
            headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        }
        response
    }

    fn write(&self, out: &mut Vec<u8>, code: Option<&str>) {
        let mut error = ObjectWriter::new(out);
        error.text("message", &self.message).text("type", self.code.kind());
        match &self.param {
            Some(param) => error.text("param", param),
            None => error.null("param"),
        };
        match code {
            Some(code) => error.text("code", code),
            None => error.null("code"),
        };
        error.end();
    }

    /// What clients look at beside the object.
    fn headers(&self) -> impl Iterator<Item = (&'static str, HeaderValue)> {
        // OpenAI's clients retry such a status unless they are told that it will not help.
        let lasts = self.code.lasts().then(|| ("x-should-retry", HeaderValue::from_static("false")));
        let wait = self.retry_after.map(|seconds| ("retry-after", HeaderValue::from(seconds)));
        [Some(("x-godex-error", HeaderValue::from_static(self.code.domain()))), lasts, wait].into_iter().flatten()
    }

    /// The same as a message of a WebSocket. There the code is always a text.
    pub(crate) fn message(&self, request_id: Option<&HeaderValue>, stream_id: Option<&str>) -> Vec<u8> {
        let mut out = Vec::with_capacity(384);
        let mut message = ObjectWriter::new(&mut out);
        message.text("type", "error").int("status", self.status.as_u16());
        self.write(message.key("error"), Some(self.wire.as_deref().unwrap_or(self.code.domain())));
        let request_id = request_id.map(|id| ("x-request-id", id.clone()));
        let mut headers = ObjectWriter::new(message.key("headers"));
        for (name, value) in self.headers().chain(request_id) {
            headers.text(name, value.to_str().unwrap_or_default());
        }
        headers.end();
        if let Some(stream_id) = stream_id {
            message.text("stream_id", stream_id);
        }
        message.end();
        out
    }
}

/// Whether a provider's code looks like one of OpenAI's; others would only puzzle clients.
fn is_code(code: &str) -> bool {
    let part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    code.len() <= 64 && code.starts_with(|c: char| c.is_ascii_lowercase()) && code.bytes().all(part)
}

impl From<Invalid> for ApiError {
    fn from(invalid: Invalid) -> Self {
        Self::invalid(&invalid)
    }
}

/// Enough of a client's text to recognise it, and nothing that only a terminal would see.
pub(crate) fn clip(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(128).collect()
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;

//! The only place that knows OpenAI's error object and which status goes with what.

use bridge::{Failure, FailureClass};
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use wire::json::{Invalid, ObjectWriter};

/// An answer that is an error: `{"error": {message, type, param, code}}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) kind: &'static str,
    /// `error.code`: OpenAI's, else our own; none where OpenAI has none.
    pub(crate) code: Option<Box<str>>,
    pub(crate) param: Option<Box<str>>,
    pub(crate) message: Box<str>,
    /// The domain code, for the `x-godex-error` header and the log.
    pub(crate) domain: &'static str,
    pub(crate) retry_after: Option<u32>,
    /// `Allow`, with 405.
    pub(crate) allow: Option<Box<str>>,
}

impl ApiError {
    fn new(status: StatusCode, domain: &'static str, message: impl Into<String>) -> Self {
        let kind = if status.is_server_error() { "server_error" } else { "invalid_request_error" };
        Self {
            status,
            kind,
            code: code_of(domain).map(Into::into),
            param: None,
            message: message.into().into(),
            domain,
            retry_after: None,
            allow: None,
        }
    }

    pub(crate) fn bad_request(domain: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, domain, message)
    }

    #[must_use]
    pub(crate) fn with_param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into().into());
        self
    }

    /// A body that is JSON and not what is wanted there.
    pub(crate) fn invalid_body(invalid: Invalid) -> Self {
        Self::bad_request("invalid_body", invalid.at("body").to_string())
    }

    pub(crate) fn invalid(invalid: &Invalid) -> Self {
        let param = (!invalid.path.is_empty()).then(|| invalid.path.as_str().into());
        Self { param, ..Self::new(StatusCode::BAD_REQUEST, invalid.code(), invalid.to_string()) }
    }

    pub(crate) fn forbidden(domain: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, domain, message)
    }

    pub(crate) fn not_found(method: &http::Method, path: &str) -> Self {
        let path: String = path.chars().take(256).collect();
        Self::new(StatusCode::NOT_FOUND, "not_found", format!("Invalid URL ({method} {path})"))
    }

    pub(crate) fn method_not_allowed(method: &http::Method, allow: &str) -> Self {
        let message = format!("Not allowed to {method} here. Allowed: {allow}.");
        let error = Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_supported", message);
        Self { allow: Some(allow.into()), ..error }
    }

    pub(crate) fn model_not_found(model: &str, hint: &str) -> Self {
        let message = format!("The requested model '{}' does not exist.{hint}", clip(model));
        Self::new(StatusCode::NOT_FOUND, "model_not_found", message).with_param("model")
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("The request body is larger than the {limit} bytes that are accepted.");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "request_too_large", message)
    }

    /// Empty: the request does not say.
    pub(crate) fn unsupported_content_type(found: &str) -> Self {
        let message = match found {
            "" => "The request has a body but no Content-Type header. This API takes 'application/json'.".to_owned(),
            _ => format!("Unsupported content type: '{found}'. This API takes 'application/json'."),
        };
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_content_type", message)
    }

    pub(crate) fn request_timeout() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", "The request body did not arrive in time.")
    }

    pub(crate) fn upgrade_required() -> Self {
        let message = "WebSocket is not served here yet; use POST with stream: true.";
        Self::new(StatusCode::UPGRADE_REQUIRED, "websocket_not_supported", message)
    }

    pub(crate) fn response_not_found(id: &str) -> Self {
        let message = format!("Response with id '{}' not found.", clip(id));
        Self::new(StatusCode::NOT_FOUND, "response_not_found", message)
    }

    pub(crate) fn conversation_not_found(id: &str) -> Self {
        let message = format!("Conversation with id '{}' not found.", clip(id));
        Self::new(StatusCode::NOT_FOUND, "conversation_not_found", message)
    }

    pub(crate) fn item_not_found(id: &str) -> Self {
        let message = format!(
            "Item with id '{}' not found. Items are not persisted when `store` is set to false. Try again with \
             `store` set to true, or remove this item from your input.",
            clip(id)
        );
        Self::new(StatusCode::NOT_FOUND, "item_not_found", message)
    }

    pub(crate) fn conversation_item_not_found(conversation: &str, id: &str) -> Self {
        let message = format!("Item with id '{}' not found in conversation '{}'.", clip(id), clip(conversation));
        Self::new(StatusCode::NOT_FOUND, "item_not_found", message)
    }

    /// `status` is the operator's choice: 400 as OpenAI has it, or 404.
    fn previous(domain: &'static str, message: String, status: u16) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
        Self::new(status, domain, message).with_param("previous_response_id")
    }

    pub(crate) fn previous_not_found(id: &str, status: u16) -> Self {
        let message = format!("Previous response with id '{}' not found.", clip(id));
        Self::previous("session.chain.not_found", message, status)
    }

    pub(crate) fn ancestor_deleted(id: &str, status: u16) -> Self {
        let message =
            format!("Previous response with id '{}' cannot be continued: a response before it was deleted.", clip(id));
        Self::previous("session.chain.deleted_ancestor", message, status)
    }

    pub(crate) fn chain_too_deep(limit: u32) -> Self {
        let message = format!("The chain of previous responses is longer than the {limit} that are allowed.");
        Self::bad_request("session.chain.depth_exceeded", message).with_param("previous_response_id")
    }

    pub(crate) fn chain_unavailable(id: &str, status: store::Status) -> Self {
        let message = format!("Previous response with id '{}' cannot be continued: its status is {status}.", clip(id));
        Self::bad_request("session.chain.unavailable", message).with_param("previous_response_id")
    }

    /// A store that failed, or refused what is nobody's fault but the request's. Never 401 or 404.
    pub(crate) fn store(error: &store::Error) -> Self {
        use store::Error;
        match error {
            Error::Locked => {
                let message =
                    "Another process is currently operating on this conversation. Please retry in a few seconds.";
                Self::bad_request("conversation_locked", message).with_param("conversation")
            }
            Error::NoSuchCursor => {
                Self::bad_request("invalid_value", "No item of this list has the id that 'after' names.")
                    .with_param("after")
            }
            Error::NoRoom => Self::too_many_bytes(),
            Error::Full => Self::unavailable("storage_full", "The session store is full."),
            Error::Unavailable(_) => Self::unavailable("storage_unavailable", error.to_string()),
            Error::Corrupt(_) => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "storage_damaged", "The session store is damaged.")
            }
            Error::NotFound | Error::DeletedAncestor => {
                let message = "What this turn continues was deleted while it ran.";
                Self::new(StatusCode::NOT_FOUND, "session.deleted_meanwhile", message)
            }
            Error::TooDeep { .. } | Error::Conflict => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "storage_error",
                "The session store gave no usable answer.",
            ),
        }
    }

    pub(crate) fn too_many_bytes() -> Self {
        let message = "The server holds as many bytes of requests as it may. Please retry in a moment.";
        Self::unavailable("too_many_bytes_in_flight", message)
    }

    pub(crate) fn shutting_down() -> Self {
        Self::unavailable("shutting_down", "The server is shutting down.")
    }

    pub(crate) fn unavailable(domain: &'static str, message: impl Into<String>) -> Self {
        Self { retry_after: Some(1), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, domain, message) }
    }

    /// An upstream's failure, before anything was sent: the class is kept, the operator's faults are not the
    /// client's.
    pub(crate) fn upstream(failure: &Failure) -> Self {
        use FailureClass as Class;
        let status = match failure.class {
            Class::InvalidRequest | Class::ContentPolicy | Class::ContextOverflow => StatusCode::BAD_REQUEST,
            Class::ModelNotFound => StatusCode::NOT_FOUND,
            Class::RateLimit | Class::Quota => StatusCode::TOO_MANY_REQUESTS,
            Class::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
            Class::Timeout => StatusCode::GATEWAY_TIMEOUT,
            Class::Auth
            | Class::Server
            | Class::Unreachable
            | Class::Truncated
            | Class::Protocol
            | Class::Empty
            | Class::InvalidOutput => StatusCode::BAD_GATEWAY,
        };
        let code = match failure.class {
            Class::InvalidRequest => failure.upstream_code.as_deref().filter(|code| is_code(code)),
            Class::RateLimit => Some("rate_limit_exceeded"),
            Class::Quota => Some("insufficient_quota"),
            _ => None,
        };
        let code = code.or_else(|| code_of(failure.class.code())).map(Into::into);
        let param = match failure.class {
            Class::ContextOverflow => Some("input".into()),
            Class::ModelNotFound => Some("model".into()),
            _ => None,
        };
        // Codex gives up at once on a 429 that does not say when to come back.
        let retry_after = match failure.class {
            Class::RateLimit => Some(failure.retry_after.unwrap_or(1)),
            _ => failure.retry_after,
        };
        let message = match failure.class {
            Class::Auth => format!("The provider refused the configured credentials: {}", failure.shown()).into(),
            _ => failure.shown().into(),
        };
        Self {
            status,
            kind: failure.class.kind(),
            code,
            param,
            message,
            domain: failure.class.code(),
            retry_after,
            allow: None,
        }
    }

    pub(crate) fn response(&self) -> Response<Bytes> {
        let mut body = Vec::with_capacity(256);
        let mut outer = ObjectWriter::new(&mut body);
        let mut error = ObjectWriter::new(outer.key("error"));
        error.text("message", &self.message).text("type", self.kind);
        match &self.param {
            Some(param) => error.text("param", param),
            None => error.null("param"),
        };
        match &self.code {
            Some(code) => error.text("code", code),
            None => error.null("code"),
        };
        error.end();
        outer.end();
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert("x-godex-error", HeaderValue::from_static(self.domain));
        if LASTING.contains(&self.domain) {
            headers.insert("x-should-retry", HeaderValue::from_static("false"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(allow) = self.allow.as_deref().and_then(|allow| HeaderValue::from_str(allow).ok()) {
            headers.insert(header::ALLOW, allow);
        }
        response
    }
}

/// Statuses that clients retry, for what will be the same in a minute: OpenAI's clients ask for it to be said.
const LASTING: &[&str] = &["provider_quota", "provider_auth", "storage_damaged"];

/// `error.code` for a domain code. Dots are for the header only.
fn code_of(domain: &'static str) -> Option<&'static str> {
    match domain {
        // OpenAI says these in words alone.
        "invalid_json"
        | "invalid_utf8"
        | "invalid_body"
        | "invalid_request"
        | "bridge.history.unknown_call"
        | "item_not_found"
        | "response_not_found"
        | "conversation_not_found"
        | "response_not_streamable" => None,
        "session.chain.not_found" | "session.chain.deleted_ancestor" => Some("previous_response_not_found"),
        "session.chain.unavailable" => Some("previous_response_unavailable"),
        "session.chain.depth_exceeded" => Some("chain_depth_exceeded"),
        domain => domain.rsplit('.').next(),
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

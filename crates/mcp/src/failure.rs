//! Why a server's tools are not known, or a call came to nothing, in the words of the Responses API.

use std::error::Error;
use std::fmt;

use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use serde_json::json;

/// The most of a server's words about a failure that is kept.
const LONGEST: usize = 2 << 10;
/// Shorter ones are parts of ordinary words.
const SHORTEST_SECRET: usize = 6;

/// What went wrong. Holds nothing that was sent to the server as a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The tool ran, and says that it failed.
    Tool { text: String },
    /// The server refused the request.
    Protocol { code: i32, message: String },
    /// There is no usable answer. The code is the server's status, 504 where it took too long, and else 502.
    Http { code: u16, message: String },
}

impl Failure {
    /// There is no usable answer.
    pub fn broken(message: impl Into<String>) -> Self {
        Self::Http { code: 502, message: message.into() }
    }

    /// It took too long.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::Http { code: 504, message: message.into() }
    }

    /// `error` of an `mcp_call`.
    pub fn to_json(&self) -> String {
        let error = match self {
            Self::Tool { text } => {
                json!({"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": text}]})
            }
            Self::Protocol { code, message } => {
                json!({"type": "mcp_protocol_error", "code": code, "message": message})
            }
            Self::Http { code, message } => json!({"type": "http_error", "code": code, "message": message}),
        };
        error.to_string()
    }

    pub(crate) fn of_start(error: &ClientInitializeError, secrets: &Secrets) -> Self {
        match error {
            ClientInitializeError::TransportError { error, .. } => Self::of_transport(error),
            ClientInitializeError::JsonRpcError(error) => Self::protocol(error.code.0, &error.message, secrets),
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => Self::of_start(fallback, secrets),
            ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
                Self::broken("The server speaks no version of the protocol that this client does.")
            }
            _ => Self::broken("The server did not begin the conversation as the protocol says."),
        }
    }

    pub(crate) fn of_request(error: &ServiceError, secrets: &Secrets) -> Self {
        match error {
            ServiceError::McpError(error) => Self::protocol(error.code.0, &error.message, secrets),
            ServiceError::TransportSend(error) => Self::of_transport(error),
            ServiceError::Timeout { timeout } => {
                Self::timeout(format!("The server did not answer within {} seconds.", timeout.as_secs()))
            }
            ServiceError::UnexpectedResponse => Self::broken("The server's answer is not what the protocol says."),
            _ => Self::broken("The connection to the server broke off before its answer was whole."),
        }
    }

    fn protocol(code: i32, message: &str, secrets: &Secrets) -> Self {
        Self::Protocol { code, message: secrets.scrub(message) }
    }

    /// What our own transport said, wherever it is in the chain.
    fn of_transport(error: &DynamicTransportError) -> Self {
        let mut next: Option<&(dyn Error + 'static)> = Some(error.error.as_ref());
        while let Some(error) = next {
            if let Some(StreamableHttpError::Client(Carried(failure))) = error.downcast_ref() {
                return failure.clone();
            }
            next = error.source();
        }
        Self::broken("The connection to the server broke off.")
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool { text } => f.write_str(text),
            Self::Protocol { code, message } => write!(f, "The server refused the request ({code}): {message}"),
            Self::Http { code: 502 | 504, message } => f.write_str(message),
            Self::Http { code, message } => write!(f, "The server answered with status {code}: {message}"),
        }
    }
}

/// A failure on its way through the protocol's machinery.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Carried(pub(crate) Failure);

/// What was sent to a server and must not come back in its words: the values of headers, and what is in the address.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    pub(crate) fn of<'a>(values: impl Iterator<Item = &'a str>) -> Self {
        let mut secrets: Vec<String> = Vec::new();
        for value in values {
            // A token is a secret also without the word before it.
            let token = value.rsplit(' ').next().unwrap_or_default();
            secrets.extend([value, token].into_iter().filter(|text| text.len() >= SHORTEST_SECRET).map(str::to_owned));
        }
        // The longest first: one may be a part of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self(secrets)
    }

    /// None of the secrets.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "[redacted]"))
    }

    /// Enough of a server's words to understand them, and none of the secrets.
    pub(crate) fn scrub(&self, text: &str) -> String {
        let text: String = self.redact(text).chars().filter(|c| !c.is_control() || *c == '\n').collect();
        clip(&text, LONGEST).to_owned()
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

/// The beginning of a text, whole characters only.
pub(crate) fn clip(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_come_back() {
        let secrets = Secrets::of(["Bearer token-123", "short", "/a/secret/path"].into_iter());
        let said = "no: Bearer token-123, token-123, short, /a/secret/path\u{1b}[2J";
        assert_eq!(secrets.scrub(said), "no: [redacted], [redacted], short, [redacted][2J");
        let long = secrets.scrub(&"ä".repeat(3000));
        assert_eq!((long.len(), long.chars().count()), (2048, 1024));
        assert!(!format!("{secrets:?}").contains("token"));
    }

    #[test]
    fn each_kind_has_its_form() {
        let cases = [
            (
                Failure::Tool { text: "no".to_owned() },
                r#"{"type":"mcp_tool_execution_error","content":[{"type":"text","text":"no"}]}"#,
            ),
            (
                Failure::Protocol { code: -32602, message: "no".to_owned() },
                r#"{"type":"mcp_protocol_error","code":-32602,"message":"no"}"#,
            ),
            (
                Failure::Http { code: 401, message: "no".to_owned() },
                r#"{"type":"http_error","code":401,"message":"no"}"#,
            ),
        ];
        for (failure, json) in cases {
            assert_eq!(failure.to_json(), json);
        }
    }
}

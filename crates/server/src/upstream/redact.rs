//! The provider's key in the provider's own words: some servers repeat it in their errors. It is not passed on.

use std::sync::Arc;

use bridge::Failure;

use crate::config::Secret;

const INSTEAD: &str = "[redacted]";

/// Shorter keys are placeholders; replacing them would only garble messages.
const SHORTEST: usize = 8;

#[derive(Debug, Clone, Default)]
pub(crate) struct Redactor(Arc<[Secret]>);

impl Redactor {
    /// Everything that a provider is sent in confidence.
    pub(super) fn new<'s>(secrets: impl IntoIterator<Item = &'s Secret>) -> Self {
        let bare = |secret: &Secret| {
            let text = secret.expose();
            let scheme = ["Bearer ", "Basic "].into_iter().find(|scheme| text.starts_with(scheme)).unwrap_or_default();
            Secret::new(text[scheme.len()..].to_owned())
        };
        Self(secrets.into_iter().map(bare).filter(|secret| secret.expose().len() >= SHORTEST).collect())
    }

    /// A failure as it may be shown: its message, and its code.
    pub(crate) fn failure(&self, failure: &mut Failure) {
        self.text(&mut failure.message);
        if let Some(code) = &mut failure.upstream_code {
            self.text(code);
        }
    }

    fn text(&self, text: &mut String) {
        for secret in self.0.iter().map(Secret::expose) {
            if text.contains(secret) {
                *text = text.replace(secret, INSTEAD);
            }
        }
    }

    /// The same for what has been written from this offset on.
    pub(crate) fn bytes(&self, out: &mut Vec<u8>, from: usize) {
        if self.0.is_empty() || from > out.len() {
            return;
        }
        match String::from_utf8(out.split_off(from)) {
            Ok(mut text) => {
                self.text(&mut text);
                out.extend_from_slice(text.as_bytes());
            }
            Err(error) => out.extend_from_slice(error.as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_go_and_placeholders_stay() {
        for (key, text, expected) in [
            (Some("sk-0123456789"), "bad key sk-0123456789!", "bad key [redacted]!"),
            (Some("Bearer sk-0123456789"), "bad key sk-0123456789!", "bad key [redacted]!"),
            (Some("none"), "there is none", "there is none"),
            (None, "sk-0123456789", "sk-0123456789"),
        ] {
            let redactor = Redactor::new(&key.map(|key| Secret::new(key.to_owned())));
            let mut out = format!("{text}{text}").into_bytes();
            redactor.bytes(&mut out, text.len());
            assert_eq!(String::from_utf8(out).unwrap(), format!("{text}{expected}"), "{key:?}");
        }
    }
}

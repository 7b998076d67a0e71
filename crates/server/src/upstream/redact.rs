//! The provider's key in the provider's own words: some servers repeat it in their errors. It is not passed on.

use crate::config::Secret;

const INSTEAD: &str = "[redacted]";

/// Shorter keys are placeholders; replacing them would only garble messages.
const SHORTEST: usize = 8;

#[derive(Debug, Clone, Default)]
pub(crate) struct Redactor(Option<Secret>);

impl Redactor {
    pub(super) fn new(key: Option<&Secret>) -> Self {
        Self(key.filter(|key| key.expose().len() >= SHORTEST).cloned())
    }

    pub(crate) fn text(&self, text: &mut String) {
        if let Some(key) = self.0.as_ref().map(Secret::expose).filter(|key| text.contains(*key)) {
            *text = text.replace(key, INSTEAD);
        }
    }

    /// The same for what has been written from this offset on.
    pub(crate) fn bytes(&self, out: &mut Vec<u8>, from: usize) {
        if self.0.is_none() || from > out.len() {
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
            (Some("none"), "there is none", "there is none"),
            (None, "sk-0123456789", "sk-0123456789"),
        ] {
            let redactor = Redactor::new(key.map(|key| Secret::new(key.to_owned())).as_ref());
            let mut out = format!("{text}{text}").into_bytes();
            redactor.bytes(&mut out, text.len());
            assert_eq!(String::from_utf8(out).unwrap(), format!("{text}{expected}"), "{key:?}");
        }
    }
}

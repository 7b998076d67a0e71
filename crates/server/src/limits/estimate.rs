//! About how many tokens a turn will take, before anybody is asked: what is held back of `tpm` until it is known.

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// About as many bytes as a token has in a request.
const BYTES_PER_TOKEN: u64 = 4;
/// What an image or a file is taken for, whatever its bytes.
const ATTACHMENT: u64 = 1000;
/// What an answer is taken for where the request does not say how long it may be, and at most where it does: few answers
/// are as long as they may.
const OUTPUT: u64 = 1000;
const MOST_OUTPUT: u64 = 4000;

/// Both ways.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tokens {
    pub(crate) input: u64,
    pub(crate) output: u64,
}

impl Tokens {
    /// The same with a past of so many bytes.
    pub(crate) const fn after(self, past: usize) -> Self {
        Self { input: self.input + past as u64 / BYTES_PER_TOKEN, ..self }
    }

    /// Of a request with this body. What it continues is in the store, and counts when it is known.
    pub(crate) fn of(body: &[u8], max_output_tokens: Option<i64>) -> Self {
        let most = max_output_tokens.and_then(|most| u64::try_from(most).ok());
        Self { input: input(body), output: most.unwrap_or(OUTPUT).min(MOST_OUTPUT) }
    }
}

fn input(body: &[u8]) -> u64 {
    let (mut text, mut attachments, mut rest) = (0, 0, body);
    while let Some(at) = find_base64(rest) {
        text += at;
        attachments += 1;
        let end = memchr::memchr(b'"', &rest[at..]).map_or(rest.len(), |end| at + end);
        rest = &rest[end..];
    }
    ((text + rest.len()) as u64).div_ceil(BYTES_PER_TOKEN) + attachments * ATTACHMENT
}

/// Where the data of the next data URL begins.
fn find_base64(bytes: &[u8]) -> Option<usize> {
    static MARK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(";base64,"));
    MARK.find(bytes).map(|at| at + MARK.needle().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_not_text() {
        let image = |data: &str| format!(r#"{{"input":"data:image/png;base64,{data}","x":"yyyyyyyy"}}"#);
        let (small, large) = (image("AAAA"), image(&"A".repeat(1 << 20)));
        assert_eq!(input(small.as_bytes()), input(large.as_bytes()));
        assert!((1000..1030).contains(&input(small.as_bytes())));
        for (body, tokens) in [("", 0), ("12345678", 2), (";;base64;base64", 4), ("a;base64,", 1003)] {
            assert_eq!(input(body.as_bytes()), tokens, "{body}");
        }
        for (most, output) in [(None, 1000), (Some(16), 16), (Some(1 << 40), 4000), (Some(-1), 1000)] {
            assert_eq!(Tokens::of(b"", most).output, output, "{most:?}");
        }
    }
}

//! What the process that reads a PDF says of it, as bytes. Whoever listens believes nothing: what is cut off, too long or
//! no text is no message.

use crate::{Reading, Unreadable};

/// So begins every message, with the version of its form.
const MAGIC: &[u8] = b"godex pdf 1\n";
/// So ends it: a process that dies has not said it.
const END: &[u8] = b"\nend\n";

const REASONS: [Unreadable; 4] = [Unreadable::Encrypted, Unreadable::Damaged, Unreadable::NoText, Unreadable::Limits];

impl Reading {
    /// The most bytes that a message has for so many pages and bytes of text.
    pub const fn longest_message(pages: usize, bytes: usize) -> usize {
        MAGIC.len() + 1 + 4 + 1 + 4 + pages.saturating_mul(4).saturating_add(bytes) + END.len()
    }

    /// What was read, or why nothing was.
    pub fn message(result: Result<&Self, Unreadable>) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        match result {
            Ok(reading) => {
                out.push(b'r');
                out.extend(number(reading.of));
                out.push(u8::from(reading.cut));
                out.extend(number(reading.pages.len()));
                for page in &reading.pages {
                    out.extend(number(page.len()));
                    out.extend_from_slice(page.as_bytes());
                }
            }
            Err(reason) => {
                out.push(b'u');
                let index = REASONS.iter().position(|known| *known == reason).unwrap_or_default();
                out.extend(u8::try_from(index));
            }
        }
        out.extend_from_slice(END);
        out
    }

    /// What a message says; None: it is none.
    pub fn of_message(message: &[u8]) -> Option<Result<Self, Unreadable>> {
        let mut rest = message.strip_prefix(MAGIC)?.strip_suffix(END)?;
        let result = match take(&mut rest, 1)? {
            b"r" => {
                let of = take_number(&mut rest)?;
                let cut = take(&mut rest, 1)? == [1];
                let count = take_number(&mut rest)?;
                let mut pages = Vec::new();
                for _ in 0..count {
                    let length = take_number(&mut rest)?;
                    pages.push(str::from_utf8(take(&mut rest, length)?).ok()?.to_owned());
                }
                Ok(Self { pages, of, cut })
            }
            b"u" => Err(*REASONS.get(usize::from(*take(&mut rest, 1)?.first()?))?),
            _ => return None,
        };
        rest.is_empty().then_some(result)
    }
}

fn number(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes()
}

fn take<'m>(rest: &mut &'m [u8], length: usize) -> Option<&'m [u8]> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

fn take_number(rest: &mut &[u8]) -> Option<usize> {
    let bytes = take(rest, 4)?.try_into().ok()?;
    usize::try_from(u32::from_be_bytes(bytes)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading() -> Reading {
        Reading { pages: vec!["one".into(), String::new(), "drei — 三".into()], of: 7, cut: true }
    }

    #[test]
    fn what_is_said_is_understood() {
        for result in [Ok(reading()), Ok(Reading::default())].into_iter().chain(REASONS.map(Err)) {
            let message = Reading::message(result.as_ref().map_err(|reason| *reason));
            assert_eq!(Reading::of_message(&message), Some(result));
        }
        let reading = reading();
        let bytes = reading.pages.iter().map(String::len).sum();
        assert_eq!(Reading::message(Ok(&reading)).len(), Reading::longest_message(reading.pages.len(), bytes));
    }

    /// A process that died in the middle, or that says something else.
    #[test]
    fn what_is_cut_or_wrong_is_no_message() {
        let message = Reading::message(Ok(&reading()));
        for end in 0..message.len() {
            assert_eq!(Reading::of_message(&message[..end]), None, "{end}");
        }
        for (at, byte) in
            [(0, b'G'), (MAGIC.len(), b'x'), (MAGIC.len() + 6, 9), (MAGIC.len() + 9, 4), (MAGIC.len() + 14, 255)]
        {
            let mut wrong = message.clone();
            wrong[at] = byte;
            assert_eq!(Reading::of_message(&wrong), None, "{at}");
        }
        assert_eq!(Reading::of_message(&[message.as_slice(), b"x"].concat()), None);
        assert_eq!(Reading::of_message(&[MAGIC, b"u\x04", END].concat()), None);
    }
}

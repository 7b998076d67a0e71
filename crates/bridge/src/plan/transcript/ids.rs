//! Ids of calls in the form that the provider takes, each call's own. The same id gives the same id in every
//! request; the pair of call and result always agrees.

use std::fmt::Write;

use wire::chat::Str;
use wire::json::Text;

use super::Builder;
use crate::dialect::CallIds;
use crate::plan::tools::names;

impl<'a> Builder<'_, 'a, '_> {
    /// The id of the call at `index`; `nth` calls before it have the same.
    pub(super) fn call_id(&mut self, id: Option<Text<'a>>, index: usize, nth: usize) -> Str<'a> {
        let id = id.filter(|id| !id.is_empty());
        match (id, nth) {
            // A call that ran before has taken it.
            (Some(id), 0) if self.made_ids.contains(&*id.decode()) => self.made(format!("{}_2", id.decode())),
            (Some(id), 0) if self.dialect.request.messages.call_ids == CallIds::Any => id.into(),
            (Some(id), 0) => self.styled(id.decode().into_owned()),
            (Some(id), nth) => self.made(format!("{}_{}", id.decode(), nth + 1)),
            (None, _) => self.made(format!("call_{index}")),
        }
    }

    /// The id of a call with its result inside: its own, unless an earlier one has it. A later one steps aside: what was
    /// sent before stays as it was.
    pub(super) fn own_id(&mut self, id: Option<Text<'a>>, index: usize) -> Str<'a> {
        match id.map(Text::decode).filter(|id| !id.is_empty()) {
            Some(id) if !self.pairs.is_taken_before(&id, index) && !self.made_ids.contains(&*id) => {
                self.made_ids.insert(id.clone().into_owned());
                self.styled(id.into_owned())
            }
            Some(id) => self.made(id.into_owned()),
            None => self.made(format!("call_{index}")),
        }
    }

    /// An id that no call has, and that was not made before.
    fn made(&mut self, mut id: String) -> Str<'a> {
        while self.pairs.is_taken(&id) || self.made_ids.contains(&id) {
            let _ = write!(id, "_{}", self.made_ids.len());
        }
        self.made_ids.insert(id.clone());
        self.styled(id)
    }

    fn styled(&self, id: String) -> Str<'a> {
        Str::Ours(match self.dialect.request.messages.call_ids {
            CallIds::Any => id.into(),
            CallIds::Safe => names::encode(&id, 64).into_owned().into(),
            CallIds::Alnum9 => alnum9(id).into(),
        })
    }
}

fn alnum9(id: String) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return id;
    }
    let mut hash = names::fnv(id.as_bytes());
    let mut digit = || {
        let digit = DIGITS[usize::try_from(hash % 62).unwrap_or_default()];
        hash /= 62;
        char::from(digit)
    };
    (0..9).map(|_| digit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_letters_and_digits() {
        assert_eq!(alnum9("abcDEF123".to_owned()), "abcDEF123");
        for id in ["call_1", "", "toolu_01ABC!weird id", "call_2"] {
            let short = alnum9(id.to_owned());
            assert!(short.len() == 9 && short.bytes().all(|b| b.is_ascii_alphanumeric()), "{short}");
        }
        assert_ne!(alnum9("call_1".to_owned()), alnum9("call_2".to_owned()));
    }
}

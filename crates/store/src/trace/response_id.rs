//! The id of a response, as a row stores it. The ids of one request differ in what is before their digits and in the last of
//! these: where that is so, only the last are kept.

use std::borrow::Cow;

use super::coding::{put, put_bytes};

const REQUEST: &str = "req_";
const RESPONSE: &str = "resp_";
/// With what a shortened id begins; no id does.
const LIKE_THE_REQUEST: u8 = 1;
/// How many digits an id has, and how many of them are kept.
const DIGITS: usize = 48;
const KEPT: usize = 8;

/// The digits that are kept of it, if the request's id has all others.
fn shortened<'r>(request: &str, response: &'r str) -> Option<&'r [u8]> {
    let request = request.strip_prefix(REQUEST)?.as_bytes();
    let response = response.strip_prefix(RESPONSE)?.as_bytes();
    let (same, kept) = response.split_at_checked(DIGITS - KEPT)?;
    (request.len() == DIGITS && kept.len() == KEPT && request.starts_with(same)).then_some(kept)
}

/// Appends it with its length.
pub(super) fn put_short(into: &mut Vec<u8>, request: &str, response: &str) {
    match shortened(request, response) {
        Some(kept) => {
            put(into, 1 + KEPT as u64);
            into.push(LIKE_THE_REQUEST);
            into.extend_from_slice(kept);
        }
        None => put_bytes(into, response.as_bytes()),
    }
}

/// It as it was; None: it is damaged.
pub(super) fn whole<'s>(request: &str, stored: &'s str) -> Option<Cow<'s, str>> {
    let Some(kept) = stored.strip_prefix(char::from(LIKE_THE_REQUEST)) else { return Some(stored.into()) };
    let same = request.strip_prefix(REQUEST)?.get(..DIGITS - KEPT)?;
    Some([RESPONSE, same, kept].concat().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::coding::Taker;

    #[test]
    fn ids_come_back_and_those_of_one_request_are_short() {
        let digits = "01a1f6350a53ae399d8ea62cd3523f03bdba4f1a1f70ecaa";
        let other = digits.replace("aa", "ab");
        let ours = format!("req_{digits}");
        for (request, response, length) in [
            (&*ours, format!("resp_{digits}"), 10),
            (&ours, format!("resp_{other}"), 10),
            // Of another request, of another form, of a client, and nothing.
            (&ours, format!("resp_{}", digits.replacen("01", "02", 1)), 54),
            (&ours, format!("resp_{digits}0"), 55),
            (&ours, format!("resp_{}", &digits[1..]), 53),
            (&ours, format!("conv_{digits}"), 54),
            ("mine", format!("resp_{digits}"), 54),
            ("req_", "resp_".to_owned(), 6),
            ("", String::new(), 1),
            (&ours, String::new(), 1),
        ] {
            let mut bytes = Vec::new();
            put_short(&mut bytes, request, &response);
            assert_eq!(bytes.len(), length, "{request} {response}");
            let stored = Taker(&bytes).text().unwrap();
            assert_eq!(whole(request, stored).as_deref(), Some(&*response), "{request}");
        }
        for request in ["", "req_", "req_größe", "resp_01a1"] {
            assert_eq!(whole(request, "\u{1}1f70ecaa"), None, "{request}");
        }
    }
}

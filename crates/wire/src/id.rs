//! Identifiers: a prefix that names the kind and 48 hexadecimal digits, as OpenAI's are.
//!
//! One seed makes all the ids of a turn. It comes from outside: the server draws it, tests count. Who goes on with a turn
//! that another process began draws nothing: the turn's bits are in its id.

use std::fmt;

/// The source of one turn's ids: 192 bits that no other turn has, and a counter for what the turn makes.
#[derive(Debug, Clone)]
pub struct Ids {
    seed: [u8; 24],
    next: u32,
}

/// What an id is for; its prefix on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdKind {
    Response,
    Message,
    Reasoning,
    FunctionCall,
    CustomToolCall,
    ShellCall,
    LocalShellCall,
    ApplyPatchCall,
    ToolSearchCall,
    Call,
    FunctionCallOutput,
    CustomToolCallOutput,
    Compaction,
    McpListTools,
    McpCall,
    McpApprovalRequest,
    WebSearchCall,
    /// An item of any other kind.
    Item,
    Conversation,
    Request,
    /// What a webhook tells.
    Event,
}

impl IdKind {
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Response => "resp_",
            Self::Message => "msg_",
            Self::Reasoning => "rs_",
            Self::FunctionCall => "fc_",
            Self::CustomToolCall => "ctc_",
            Self::ShellCall => "sh_",
            Self::LocalShellCall => "lsh_",
            Self::ApplyPatchCall => "apc_",
            Self::ToolSearchCall => "tsc_",
            Self::Call => "call_",
            Self::FunctionCallOutput => "fco_",
            Self::CustomToolCallOutput => "ctco_",
            Self::Compaction => "cmp_",
            Self::McpListTools => "mcpl_",
            Self::McpCall => "mcp_",
            Self::McpApprovalRequest => "mcpr_",
            Self::WebSearchCall => "ws_",
            Self::Item => "item_",
            Self::Conversation => "conv_",
            Self::Request => "req_",
            Self::Event => "evt_",
        }
    }
}

/// An identifier: ASCII, safe in JSON, headers and URLs as it is.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Id(Box<str>);

impl Ids {
    pub const fn new(seed: [u8; 24]) -> Self {
        Self { seed, next: 0 }
    }

    /// More ids under the random bits of one that [`Ids::new`] made first: none of them is one that it gave out, nor one
    /// of another `attempt` to go on. None for an id that is not of that form.
    pub fn of(id: &str, attempt: u32) -> Option<Self> {
        let mut seed = bytes(id)?;
        // Beside the counter's bytes, so that no counter comes to the same.
        for (byte, count) in seed[16..20].iter_mut().zip(attempt.wrapping_add(1).to_be_bytes()) {
            *byte ^= count;
        }
        Some(Self { seed, next: 0 })
    }

    /// The next id: the turn's bits with the counter folded into the last four bytes.
    pub fn make(&mut self, kind: IdKind) -> Id {
        let mut bytes = self.seed;
        for (byte, count) in bytes[20..].iter_mut().zip(self.next.to_be_bytes()) {
            *byte ^= count;
        }
        self.next = self.next.wrapping_add(1);
        Id::of(kind, bytes)
    }
}

/// The bytes that an id of our form has in its digits.
fn bytes(id: &str) -> Option<[u8; 24]> {
    let (_, digits) = id.rsplit_once('_')?;
    let mut bytes = [0; 24];
    if digits.len() != 2 * bytes.len() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

/// The value of a digit as ids have them.
const fn digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl Id {
    /// The id with these bytes as its digits. They are the caller's to choose so that no other has them.
    pub fn of(kind: IdKind, bytes: [u8; 24]) -> Self {
        let mut text = String::with_capacity(kind.prefix().len() + 2 * bytes.len());
        text.push_str(kind.prefix());
        for byte in bytes {
            text.push(char::from(b"0123456789abcdef"[usize::from(byte >> 4)]));
            text.push(char::from(b"0123456789abcdef"[usize::from(byte & 15)]));
        }
        Self(text.into())
    }

    pub fn into_string(self) -> String {
        self.0.into()
    }

    /// The bytes of an id of that kind; none for one that is not of our form.
    pub fn bytes(id: &str, kind: IdKind) -> Option<[u8; 24]> {
        bytes(id).filter(|_| id.len() == kind.prefix().len() + 48 && id.starts_with(kind.prefix()))
    }

    /// Somebody else's id, if it is as safe as ours are.
    pub fn given(text: &str) -> Option<Self> {
        let safe = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        ((1..=128).contains(&text.len()) && text.bytes().all(safe)).then(|| Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_of_a_turn_differ_and_are_wire_safe() {
        let mut ids = Ids::new([0xab; 24]);
        let (a, b) = (ids.make(IdKind::Response), ids.make(IdKind::Message));
        assert_eq!(a.as_str(), format!("resp_{}", "ab".repeat(24)));
        assert_eq!(b.as_str(), format!("msg_{}aa", "ab".repeat(23)));
        assert!(a.as_str().bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
        assert_eq!(Id::given("msg-1_a").unwrap().as_str(), "msg-1_a");
        assert!(["", "a b", "a\"", "\u{e9}", &"x".repeat(129)].iter().all(|text| Id::given(text).is_none()));
    }
    #[test]
    fn who_goes_on_makes_other_ids_under_the_same_bits() {
        let mut first = Ids::new(std::array::from_fn(|at| u8::try_from(at * 11).unwrap()));
        let id = first.make(IdKind::Response);
        let mut seen: BTreeSet<String> = std::iter::once(id.as_str()["resp_".len()..].to_owned()).collect();
        for ids in [Some(first), Ids::of(id.as_str(), 0), Ids::of(id.as_str(), 1), Ids::of(id.as_str(), 256)] {
            let mut ids = ids.unwrap();
            for _ in 0..1000 {
                let made = ids.make(IdKind::Message);
                assert_eq!(made.as_str()[4..36], id.as_str()[5..37], "the same random bits");
                assert!(seen.insert(made.as_str()[4..].to_owned()), "{made} again");
            }
        }
    }

    #[test]
    fn only_ids_of_our_form_can_be_gone_on_with() {
        let digits = "0123456789abcdef".repeat(3);
        assert!(Ids::of(&format!("resp_{digits}"), 0).is_some());
        let odd = ["", "resp_", "resp_1", &digits, &format!("resp_{digits}0"), &format!("resp_{}", "AB".repeat(24))];
        assert!(odd.iter().all(|id| Ids::of(id, 0).is_none()));
        assert!(Ids::of(&format!("resp_{}\u{e9}", &digits[2..]), 0).is_none());
        let bytes = Id::bytes(&format!("resp_{digits}"), IdKind::Response).unwrap();
        assert_eq!(Id::of(IdKind::Response, bytes).as_str(), format!("resp_{digits}"));
        assert_eq!(Id::bytes(&format!("resp_{digits}"), IdKind::Message), None);
        assert_eq!(Id::bytes(&format!("x_resp_{digits}"), IdKind::Response), None);
    }
}

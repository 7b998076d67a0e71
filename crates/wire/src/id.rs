//! Identifiers: a prefix that names the kind and 48 hexadecimal digits, as OpenAI's are.
//!
//! One seed makes all the ids of a turn. It comes from outside: the server draws it, tests count.

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
    /// An item of any other kind.
    Item,
    Conversation,
    Request,
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
            Self::Item => "item_",
            Self::Conversation => "conv_",
            Self::Request => "req_",
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

    /// The next id: the turn's bits with the counter folded into the last four bytes.
    pub fn make(&mut self, kind: IdKind) -> Id {
        let mut bytes = self.seed;
        for (byte, count) in bytes[20..].iter_mut().zip(self.next.to_be_bytes()) {
            *byte ^= count;
        }
        self.next = self.next.wrapping_add(1);
        let mut text = String::with_capacity(kind.prefix().len() + 48);
        text.push_str(kind.prefix());
        for byte in bytes {
            text.push(char::from(b"0123456789abcdef"[usize::from(byte >> 4)]));
            text.push(char::from(b"0123456789abcdef"[usize::from(byte & 15)]));
        }
        Id(text.into())
    }
}

impl Id {
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
}

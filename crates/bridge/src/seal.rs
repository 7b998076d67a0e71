//! What leaves as `encrypted_content` and comes back, reasoning and summaries: what is inside, and who seals it. One is
//! never taken for the other.
//!
//! The kernel knows what is sealed, not how: keys, tenants and nonces are the server's.

use wire::json::{ObjectWriter, Raw};

/// Seals and opens text for one tenant. What others sealed, or what was tampered with, does not open.
pub trait Seal: std::fmt::Debug + Send + Sync {
    fn seal(&self, plain: &[u8]) -> String;
    fn open(&self, sealed: &str) -> Option<Vec<u8>>;

    /// Whether anything can be sealed at all: without a key, there is no point in an item that only carries a seal.
    fn is_available(&self) -> bool {
        true
    }
}

/// The reasoning of an upstream, as it must be given back to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedReasoning {
    /// Whose it is: the dialect's family. Replayed to the same family only.
    pub family: String,
    pub text: String,
    /// What came with it and must return untouched: signatures, details; JSON.
    pub replay_data: Option<String>,
    /// What it is to an upstream that encrypts its reasoning itself.
    pub native: Option<Encrypted>,
    pub place: ThoughtPlace,
}

/// Where reasoning was, as far as items alone do not say it: what an upstream has signed is good only after what it was
/// signed after.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThoughtPlace {
    /// Of the first reasoning of an answer: so many items of the answer came before it, and the prompt ended in this way.
    pub began: Option<(usize, PromptEnd)>,
    /// So many calls of the answer came before it. Those that are run here become items only after the whole answer, and
    /// a client may give calls back before all else.
    pub calls: Option<usize>,
    /// Where in the text of the message before it another block began, in characters.
    pub breaks: Vec<usize>,
}

/// How a prompt ended, as far as the items in it do not say it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PromptEnd {
    /// After something of the assistant's, behind which only a placeholder of ours stood.
    pub after_assistant: bool,
    /// The last so many items in it were calls.
    pub after_calls: usize,
    /// Without what was thought before: the provider would not take that any more.
    pub without_thoughts: bool,
    /// With these words of ours.
    pub demand: Option<String>,
    /// After a summary in place of what was before, the last one there; what that is known by.
    pub after_summary: Option<u64>,
}

impl ThoughtPlace {
    fn write(&self, out: &mut Vec<u8>) {
        let mut place = ObjectWriter::new(out);
        if let Some((items, end)) = &self.began {
            place.int("began", *items).bool("after_assistant", end.after_assistant);
            if end.after_calls > 0 {
                place.int("after_calls", end.after_calls);
            }
            if end.without_thoughts {
                place.bool("without_thoughts", true);
            }
            if let Some(words) = &end.demand {
                place.text("demand", words);
            }
            if let Some(summary) = end.after_summary {
                place.int("after_summary", summary);
            }
        }
        if let Some(calls) = self.calls {
            place.int("calls", calls);
        }
        if !self.breaks.is_empty() {
            place.json("breaks", format!("{:?}", self.breaks).as_bytes());
        }
        place.end();
    }

    fn read(raw: Raw<'_>) -> Self {
        let number = |raw: Raw<'_>| raw.as_str().parse().ok();
        let summary = raw.get("after_summary").and_then(|summary| summary.as_str().parse().ok());
        let flag = |name| raw.get(name).is_some_and(|is| is.as_str() == "true");
        let end = PromptEnd {
            after_assistant: flag("after_assistant"),
            without_thoughts: flag("without_thoughts"),
            after_calls: raw.get("after_calls").and_then(number).unwrap_or(0),
            demand: raw.get("demand").and_then(Raw::text).map(|words| words.decode().into_owned()),
            after_summary: summary,
        };
        Self {
            began: raw.get("began").and_then(number).map(|items| (items, end)),
            calls: raw.get("calls").and_then(number),
            breaks: raw.get("breaks").into_iter().flat_map(Raw::elements).filter_map(number).collect(),
        }
    }
}

/// Reasoning under somebody else's seal, which may hold for one id only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encrypted {
    pub id: String,
    pub content: String,
}

impl SealedReasoning {
    /// The plain text of a seal. Versioned: an older reader leaves a newer one alone.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.text.len() + 64);
        let mut object = ObjectWriter::new(&mut out);
        object.int("v", 1).text("family", &self.family).text("text", &self.text);
        // The word is that of the first version: seals are kept for long.
        if let Some(data) = &self.replay_data {
            object.json("bag", data.as_bytes());
        }
        if let Some(native) = &self.native {
            let mut encrypted = ObjectWriter::new(object.key("native"));
            encrypted.text("id", &native.id).text("content", &native.content);
            encrypted.end();
        }
        if self.place != ThoughtPlace::default() {
            self.place.write(object.key("place"));
        }
        object.end();
        out
    }

    pub fn decode(plain: &[u8]) -> Option<Self> {
        let raw = Raw::parse(str::from_utf8(plain).ok()?).ok()?;
        if raw.get("v")?.as_str() != "1" {
            return None;
        }
        let string_of = |raw: Raw<'_>, name: &str| Some(raw.get(name)?.text()?.decode().into_owned());
        let string = |name: &str| string_of(raw, name);
        let encrypted = |raw| Some(Encrypted { id: string_of(raw, "id")?, content: string_of(raw, "content")? });
        Some(Self {
            family: string("family")?,
            text: string("text")?,
            replay_data: raw.get("bag").map(|data| data.as_str().to_owned()),
            native: raw.get("native").and_then(encrypted),
            place: raw.get("place").map(ThoughtPlace::read).unwrap_or_default(),
        })
    }
}

/// What a compaction item stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedSummary {
    pub text: String,
    /// It takes the place of every item before it, but for messages of the application and declarations of tools. Else
    /// what is before it is there because it is to stay.
    pub stands_for_all: bool,
    /// It does so where an item of this id is before it: that one was, when the summary was made, and a client that keeps
    /// its own history has left it out. Empty if there is none.
    pub after: String,
    /// The application's messages before it, a JSON array of items: a client that drops all that is before a compaction
    /// item drops these, too.
    pub instructions: String,
    /// What is not summarised and follows the summary word for word, a JSON array of items.
    pub kept: String,
}

impl SealedSummary {
    const KIND: &str = "compaction";

    /// The plain text of a seal. Versioned: an older reader leaves a newer one alone.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.text.len() + self.instructions.len() + self.kept.len() + 128);
        let mut object = ObjectWriter::new(&mut out);
        object.int("v", 1).text("kind", Self::KIND).text("summary", &self.text);
        object.bool("all", self.stands_for_all);
        if !self.after.is_empty() {
            object.text("after", &self.after);
        }
        object.json("instructions", self.instructions.as_bytes()).json("kept", self.kept.as_bytes());
        object.end();
        out
    }

    pub fn decode(plain: &[u8]) -> Option<Self> {
        let raw = Raw::parse(str::from_utf8(plain).ok()?).ok()?;
        if raw.get("v")?.as_str() != "1" || !raw.get("kind")?.text()?.is(Self::KIND) {
            return None;
        }
        let list = |name: &str| raw.get(name).map_or("[]", Raw::as_str).to_owned();
        Some(Self {
            text: raw.get("summary")?.text()?.decode().into_owned(),
            stands_for_all: raw.get("all")?.as_str() == "true",
            after: raw.get("after").and_then(Raw::text).map_or_else(String::new, |id| id.decode().into_owned()),
            instructions: list("instructions"),
            kept: list("kept"),
        })
    }

    /// The summary as the model reads it, a message item.
    pub fn message(text: &str) -> String {
        const LABEL: &str =
            "[Summary of the conversation so far. The conversation goes on from it: what it says was done is done.]";
        let mut out = Vec::with_capacity(text.len() + 192);
        let mut message = ObjectWriter::new(&mut out);
        message.text("type", "message").text("role", "user").text("content", &format!("{LABEL}\n{text}"));
        message.end();
        String::from_utf8(out).unwrap_or_default()
    }
}

/// No seal at all: for tests, and where there is no key. Nothing opens.
#[derive(Debug, Clone, Copy)]
pub struct Unsealed;

impl Seal for Unsealed {
    fn seal(&self, _: &[u8]) -> String {
        String::new()
    }

    fn open(&self, _: &str) -> Option<Vec<u8>> {
        None
    }

    fn is_available(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_survives_and_is_no_reasoning() {
        let summary = SealedSummary {
            text: "They \"met\".\n".into(),
            stands_for_all: true,
            after: "msg_1".into(),
            instructions: "[]".into(),
            kept: r#"[{"role":"user","content":"Hi"}]"#.into(),
        };
        let reasoning = SealedReasoning {
            family: "f".into(),
            text: "t".into(),
            replay_data: None,
            native: None,
            place: ThoughtPlace::default(),
        };
        assert_eq!(SealedReasoning::decode(&summary.encode()), None);
        assert_eq!(SealedSummary::decode(&reasoning.encode()), None);
        assert_eq!(SealedSummary::decode(&summary.encode()), Some(summary));
    }

    #[test]
    fn reasoning_survives_and_strangers_do_not() {
        let reasoning = SealedReasoning {
            family: "f".into(),
            text: "hm \"so\"\n".into(),
            replay_data: Some(r#"[{"sig":"x"}]"#.into()),
            native: Some(Encrypted { id: "rs_1".into(), content: "gAAA".into() }),
            place: ThoughtPlace {
                began: Some((
                    1,
                    PromptEnd {
                        after_assistant: true,
                        after_calls: 2,
                        without_thoughts: true,
                        demand: Some("\"Do\"".into()),
                        after_summary: Some(u64::MAX),
                    },
                )),
                calls: Some(0),
                breaks: vec![3, 14],
            },
        };
        assert_eq!(SealedReasoning::decode(&reasoning.encode()), Some(reasoning));
        for stranger in ["", "{}", r#"{"v":2,"family":"f","text":"t"}"#, "nonsense"] {
            assert_eq!(SealedReasoning::decode(stranger.as_bytes()), None, "{stranger}");
        }
    }
}

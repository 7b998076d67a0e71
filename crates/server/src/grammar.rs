//! Grammars of custom tools: whether the input of a call fits the one that its tool was declared with.
//!
//! A grammar is compiled when there is an input to check, once, and kept for all who declare the same; one at a time is
//! compiled, so that what the compiler may take is taken once. What is more than a moment's work is done on a thread that
//! the runtime has given up for the time. What a grammar and an input may cost is `grammar::limits`; what costs more is
//! delivered with a note, like what cannot be compiled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bridge::{InputCheck, InputGrammar, InputReading, InputSoFar, InputSyntax, InputVerdict};
use grammar::{Grammar, Progress, Reading, Repaired, Syntax, Undecided, Verdict};

use crate::output::aside;

/// What the compiled grammars may take together; those that were not used for longest go first.
const MOST_BYTES: usize = 16 << 20;
const MOST_GRAMMARS: usize = 256;
/// Texts up to this length are no work worth handing over.
const SMALL: usize = 4 << 10;
/// Problems are shown to people and models: more than this of one helps nobody.
const MAX_PROBLEM: usize = 400;

/// The grammars that are in use.
#[derive(Debug, Default)]
pub(crate) struct Grammars {
    known: Mutex<Known>,
    /// Held while one is compiled.
    compiling: Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    grammars: HashMap<(InputSyntax, String), Entry>,
    bytes: usize,
    /// How often one was asked for.
    asked: u64,
}

#[derive(Debug)]
struct Entry {
    grammar: Compiled,
    bytes: usize,
    /// When it was asked for last.
    asked: u64,
}

type Compiled = Result<Arc<Grammar>, Undecided>;

impl Grammars {
    fn get(&self, grammar: &InputGrammar) -> Compiled {
        let key = (grammar.syntax, grammar.definition.clone());
        if let Some(known) = self.known().find(&key) {
            return known;
        }
        aside(|| {
            let _one = self.compiling.lock().unwrap_or_else(PoisonError::into_inner);
            // Somebody else may have been faster.
            if let Some(known) = self.known().find(&key) {
                return known;
            }
            let syntax = match grammar.syntax {
                InputSyntax::Lark => Syntax::Lark,
                InputSyntax::Regex => Syntax::Regex,
            };
            let compiled = Grammar::compile(syntax, &grammar.definition).map(Arc::new);
            self.known().keep(key, compiled.clone());
            compiled
        })
    }

    /// How many were compiled, or tried to be, and are still kept.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.known().grammars.len()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn find(&mut self, key: &(InputSyntax, String)) -> Option<Compiled> {
        self.asked += 1;
        let entry = self.grammars.get_mut(key)?;
        entry.asked = self.asked;
        Some(entry.grammar.clone())
    }

    fn keep(&mut self, key: (InputSyntax, String), grammar: Compiled) {
        let bytes = key.1.len() + grammar.as_ref().map_or(0, |grammar| grammar.bytes());
        self.bytes += bytes;
        self.grammars.insert(key, Entry { grammar, bytes, asked: self.asked });
        while self.bytes > MOST_BYTES || self.grammars.len() > MOST_GRAMMARS {
            let oldest = self.grammars.iter().min_by_key(|(_, entry)| entry.asked).map(|(key, _)| key.clone());
            let Some(gone) = oldest.and_then(|key| self.grammars.remove(&key)) else { return };
            self.bytes -= gone.bytes;
        }
    }
}

impl InputCheck for Grammars {
    fn begin(&self, grammar: &InputGrammar) -> Box<dyn InputReading> {
        match self.get(grammar) {
            Ok(grammar) => Box::new(Checked { reading: grammar.read(), grammar }),
            Err(Undecided(why)) => Box::new(Unusable(clip(&format!("the grammar: {why}")))),
        }
    }
}

/// An input of a grammar.
#[derive(Debug, Clone)]
struct Checked {
    grammar: Arc<Grammar>,
    reading: Reading,
}

impl InputReading for Checked {
    fn push(&mut self, text: &str) -> InputSoFar {
        let Self { grammar, reading } = self;
        let progress = if text.len() > SMALL { aside(|| reading.push(text)) } else { reading.push(text) };
        match progress {
            Progress::Fits => InputSoFar::Fits,
            Progress::Misfit if grammar.is_patch() => InputSoFar::Broken,
            Progress::Misfit => InputSoFar::Misfit,
            Progress::Undecided => InputSoFar::Unknown,
        }
    }

    fn finish(&mut self, input: &str, sent: &str) -> InputVerdict {
        match self.reading.clone().finish() {
            Verdict::Fits => InputVerdict::Fits,
            Verdict::Undecided(Undecided(why)) => InputVerdict::Unknown(clip(&why)),
            Verdict::Misfit(misfit) => match aside(|| self.grammar.repair(input, sent)) {
                Some(Repaired { input, how }) => InputVerdict::Repaired { input, how },
                None => InputVerdict::Misfit(clip(&misfit.to_string())),
            },
        }
    }

    fn copied(&self) -> Box<dyn InputReading> {
        Box::new(self.clone())
    }
}

/// An input of a grammar that cannot be used.
#[derive(Debug, Clone)]
struct Unusable(String);

impl InputReading for Unusable {
    fn push(&mut self, _: &str) -> InputSoFar {
        InputSoFar::Unknown
    }

    fn finish(&mut self, _: &str, _: &str) -> InputVerdict {
        InputVerdict::Unknown(self.0.clone())
    }

    fn copied(&self) -> Box<dyn InputReading> {
        Box::new(self.clone())
    }
}

fn clip(text: &str) -> String {
    text.chars().take(MAX_PROBLEM).collect()
}

#[cfg(feature = "grammar")]
#[cfg(test)]
mod tests {
    use super::*;

    fn regex(definition: &str) -> InputGrammar {
        let (provider_name, definition) = ("t".to_owned(), definition.to_owned());
        InputGrammar { provider_name, syntax: InputSyntax::Regex, definition }
    }

    #[test]
    fn a_grammar_is_compiled_once_and_the_oldest_go_first() {
        let grammars = Grammars::default();
        let first = grammars.get(&regex("a+")).unwrap();
        assert!(Arc::ptr_eq(&first, &grammars.get(&regex("a+")).unwrap()));
        assert!(grammars.get(&regex("(")).is_err());
        assert_eq!(grammars.known().grammars.len(), 2, "what cannot be compiled is not tried again");
        for index in 0..MOST_GRAMMARS {
            let _ = grammars.get(&regex(&format!("(b{index}")));
            let _ = grammars.get(&regex("a+"));
        }
        let known = grammars.known();
        assert_eq!(known.grammars.len(), MOST_GRAMMARS);
        assert!(known.bytes <= MOST_BYTES);
        assert!(known.grammars.contains_key(&(InputSyntax::Regex, "a+".to_owned())));
        assert!(!known.grammars.contains_key(&(InputSyntax::Regex, "(".to_owned())));
        assert_eq!(known.bytes, known.grammars.values().map(|entry| entry.bytes).sum::<usize>());
    }

    #[test]
    fn grammars_that_are_large_make_room_for_each_other() {
        let grammars = Grammars::default();
        let mut kept = Vec::new();
        for index in 0..40 {
            let words: Vec<String> = (0..4_000).map(|word| format!("word{index}x{word}")).collect();
            let _ = grammars.get(&regex(&words.join("|")));
            let known = grammars.known();
            assert!(known.bytes <= MOST_BYTES, "{}", known.bytes);
            kept.push(known.grammars.len());
        }
        assert!(kept.last() < Some(&40), "nothing had to go: {kept:?}");
    }

    #[test]
    fn inputs_are_judged_while_they_come() {
        let grammars = Grammars::default();
        for (definition, pieces, so_far, verdict) in [
            ("[a-z]+", &["ab", "c"][..], InputSoFar::Fits, InputVerdict::Fits),
            (
                "[a-z]+",
                &["ab", "C"],
                InputSoFar::Misfit,
                InputVerdict::Misfit("line 1, column 3: 'C' does not fit".to_owned()),
            ),
            ("(", &["a"], InputSoFar::Unknown, InputVerdict::Unknown(String::new())),
        ] {
            let mut reading = grammars.begin(&regex(definition));
            let found = pieces.iter().map(|piece| reading.push(piece)).last();
            assert_eq!(found, Some(so_far), "{definition}");
            let found = match reading.copied().finish(&pieces.concat(), "") {
                InputVerdict::Unknown(why) => {
                    assert!(why.starts_with("the grammar: "), "{why}");
                    InputVerdict::Unknown(String::new())
                }
                other => other,
            };
            assert_eq!(found, verdict, "{definition}");
        }
    }
}

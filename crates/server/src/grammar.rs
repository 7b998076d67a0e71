//! Grammars of custom tools: whether the input of a call fits the one that its tool was declared with.
//!
//! A grammar is compiled when there is an input to check, once, and kept for all who declare the same; one at a time is
//! compiled, so that what the compiler may take is taken once. What is more than a moment's work is done on a thread that
//! the runtime has given up for the time, and only a few do so at once; the inputs of one answer have a budget together. What a grammar and an input may cost is `grammar::limits`; what costs more is
//! delivered with a note, like what cannot be compiled.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use bridge::{InputCheck, InputGrammar, InputReading, InputSoFar, InputSyntax, InputVerdict};
use grammar::{Grammar, Progress, Reading, Repaired, Syntax, Undecided, Verdict};

use crate::output::aside;

/// What the compiled grammars may take together; those that were not used for longest go first.
const MOST_BYTES: usize = 16 << 20;
const MOST_GRAMMARS: usize = 256;
/// Texts up to this length are no work worth handing over.
const SMALL: usize = 4 << 10;
/// So many ways to go on are about 1 ms of work; and so many bytes are read before that is looked at again.
const FEW_WAYS: usize = 1_500;
const GLANCE: usize = 64;
/// What the inputs of one answer may cost together. The last of them may go beyond it by what one input may cost.
const MOST_WAYS: usize = grammar::limits::ALL_WAYS;
const TOO_MUCH: &str = "the inputs of this response would take too long";
/// Problems are shown to people and models: more than this of one helps nobody.
const MAX_PROBLEM: usize = 400;

/// The grammars that are in use.
#[derive(Debug, Default)]
pub(crate) struct Grammars {
    known: Mutex<Known>,
    /// Held while one is compiled.
    compiling: Mutex<()>,
    working: Working,
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

    /// Forgets all of them; whoever uses one keeps it.
    pub(crate) fn forget(&self) {
        let mut known = self.known();
        known.grammars = HashMap::new();
        known.bytes = 0;
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

/// Checks the inputs of one answer, which have a budget together.
#[derive(Debug)]
pub(crate) struct InputChecks {
    grammars: Arc<Grammars>,
    /// How many ways to go on were looked at.
    spent: Arc<AtomicUsize>,
}

impl InputChecks {
    pub(crate) fn new(grammars: &Arc<Grammars>) -> Self {
        Self { grammars: Arc::clone(grammars), spent: Arc::default() }
    }
}

impl InputCheck for InputChecks {
    fn begin(&self, grammar: &InputGrammar) -> Box<dyn InputReading> {
        if self.spent.load(Ordering::Relaxed) >= MOST_WAYS {
            return Box::new(Unusable(TOO_MUCH.to_owned()));
        }
        match self.grammars.get(grammar) {
            Ok(grammar) => {
                let (grammars, spent) = (Arc::clone(&self.grammars), Arc::clone(&self.spent));
                let reading = grammar.read();
                Box::new(Checked { grammars, spent, reading, grammar, is_over: false })
            }
            Err(Undecided(why)) => Box::new(Unusable(clip(&format!("the grammar: {why}")))),
        }
    }
}

/// An input of a grammar.
#[derive(Debug, Clone)]
struct Checked {
    grammars: Arc<Grammars>,
    spent: Arc<AtomicUsize>,
    grammar: Arc<Grammar>,
    reading: Reading,
    /// What all inputs may cost together is spent.
    is_over: bool,
}

impl Checked {
    /// Reads on; what is more than a moment's work, aside.
    fn read(&mut self, text: &str) -> Progress {
        let Self { grammars, reading, .. } = self;
        let mut rest = text;
        loop {
            if rest.len() > SMALL || reading.ways_ahead(rest.len()) > FEW_WAYS {
                return grammars.working.aside(|| reading.push(rest));
            }
            let (now, later) = rest.split_at(rest.floor_char_boundary(GLANCE));
            let progress = reading.push(now);
            if later.is_empty() || progress != Progress::Fits {
                return progress;
            }
            rest = later;
        }
    }

    fn spend(&mut self, ways: usize) {
        self.is_over |= self.spent.fetch_add(ways, Ordering::Relaxed) + ways > MOST_WAYS;
    }
}

impl InputReading for Checked {
    fn push(&mut self, text: &str) -> InputSoFar {
        if self.is_over {
            return InputSoFar::Unknown;
        }
        let before = self.reading.ways();
        let progress = self.read(text);
        self.spend(self.reading.ways().saturating_sub(before));
        match progress {
            Progress::Fits => InputSoFar::Fits,
            Progress::Misfit if self.grammar.is_patch() => InputSoFar::Broken,
            Progress::Misfit => InputSoFar::Misfit,
            Progress::Undecided => InputSoFar::Unknown,
        }
    }

    fn finish(&mut self, input: &str, sent: &str) -> InputVerdict {
        let Self { reading, grammar, grammars, .. } = self;
        let finish = || reading.clone().finish();
        let verdict = if reading.ways() > FEW_WAYS { grammars.working.aside(finish) } else { finish() };
        match verdict {
            Verdict::Fits => InputVerdict::Fits,
            _ if self.is_over => InputVerdict::Unknown(TOO_MUCH.to_owned()),
            Verdict::Undecided(Undecided(why)) => InputVerdict::Unknown(clip(&why)),
            Verdict::Misfit(misfit) => {
                let (repaired, ways) = grammars.working.aside(|| grammar.repair_counted(input, sent));
                self.spend(ways);
                match repaired {
                    Some(Repaired { input, how }) => InputVerdict::Repaired { input, how },
                    None => InputVerdict::Misfit(clip(&misfit.to_string())),
                }
            }
        }
    }

    fn copied(&self) -> Box<dyn InputReading> {
        Box::new(self.clone())
    }
}

/// Work that takes longer: not more at once than leaves half of the machine to others.
#[derive(Debug)]
struct Working {
    free: Mutex<usize>,
    freed: Condvar,
}

impl Default for Working {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { free: Mutex::new((cores / 2).max(1)), freed: Condvar::new() }
    }
}

impl Working {
    fn aside<T>(&self, work: impl FnOnce() -> T) -> T {
        aside(|| {
            let _place = Place::take(self);
            work()
        })
    }
}

/// One of those that work.
struct Place<'w>(&'w Working);

impl<'w> Place<'w> {
    fn take(working: &'w Working) -> Self {
        let free = working.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = working.freed.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Self(working)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
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
        let grammars = Arc::default();
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
            let mut reading = InputChecks::new(&grammars).begin(&regex(definition));
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

    /// Few bytes that can be read in very many ways: each input has an end, and all of an answer have one together.
    #[test]
    fn the_inputs_of_an_answer_have_a_budget_together() {
        let definition = format!("start: {}\nx: \"a\"? | \"w\"", vec!["x"; 900].join(" "));
        let costly = InputGrammar { provider_name: "t".to_owned(), syntax: InputSyntax::Lark, definition };
        let grammars = Arc::default();
        let checks = InputChecks::new(&grammars);
        let read = |checks: &InputChecks, grammar: &InputGrammar, input: &str| {
            let mut reading = checks.begin(grammar);
            reading.push(input);
            reading.finish(input, "")
        };
        let input = "a".repeat(800);
        let mut spent = vec![0];
        for _ in 0..60 {
            assert!(matches!(read(&checks, &costly, &input), InputVerdict::Unknown(_)));
            spent.push(checks.spent.load(Ordering::Relaxed));
        }
        let most = grammar::limits::FEW_WAYS * 3 / 2;
        assert!(spent.windows(2).all(|pair| pair[1] - pair[0] < most), "{spent:?}");
        assert!(spent.last().is_some_and(|&all| (MOST_WAYS..MOST_WAYS + most).contains(&all)), "{spent:?}");
        let InputVerdict::Unknown(why) = read(&checks, &regex("a+"), "a") else { panic!() };
        assert_eq!(why, TOO_MUCH);
        assert_eq!(read(&InputChecks::new(&grammars), &regex("a+"), "a"), InputVerdict::Fits);
        assert_eq!(*grammars.working.free.lock().unwrap(), *Working::default().free.lock().unwrap());
    }
}

//! The engine: llguidance, made to read bytes instead of a model's tokens.
//!
//! What it promises to limit it limits while it makes masks; here it reads, so the limits are put where they hold for
//! reading: the first mask sets the lexer's, the others are looked at after each few bytes. A panic inside of it is an
//! input that cannot be decided.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};

use llguidance::api::{ParserLimits, TopLevelGrammar};
use llguidance::earley::{CGrammar, CSymIdx};
use llguidance::toktrie::{ApproximateTokEnv, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenId};
use llguidance::{ParserFactory, TokenParser, panic_utils};

use crate::{Syntax, Undecided, limits};

/// The tokens are the bytes, and this one, which no text has.
const END: TokenId = 256;
/// The compiler calls itself for each rule that another one needs, as deep as [`limits::DEPTH`].
const STACK: usize = 64 << 20;
/// So many bytes are read between two looks at what it costs.
const STEP: usize = 32;
/// More ways to go on help nobody.
const MOST_EXPECTED: usize = 6;
/// The engine's messages go on and on.
const MAX_MESSAGE: usize = 300;

/// A grammar that is ready to read, and never does.
#[derive(Clone)]
pub(crate) struct Compiled {
    parser: Arc<TokenParser>,
    bytes: usize,
    /// The most ways to go on, of all places together.
    ways: usize,
}

impl Compiled {
    pub(crate) fn new(syntax: Syntax, definition: &str) -> Result<Self, Undecided> {
        let definition = definition.to_owned();
        let thread = std::thread::Builder::new().name("grammar".to_owned()).stack_size(STACK);
        let compiling = thread.spawn(move || compile(syntax, &definition));
        let compiling = compiling.map_err(|error| Undecided(format!("there is no thread to compile it: {error}")))?;
        compiling.join().unwrap_or_else(|_| Err(Undecided("the grammar breaks the compiler".to_owned())))
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn parser(&self) -> Parser {
        // The lexer is copied, too: it learns from what it reads, and may come to its end with it.
        Parser { inner: self.parser.deep_clone(), most: self.ways }
    }
}

fn compile(syntax: Syntax, definition: &str) -> Result<Compiled, Undecided> {
    let Some(factory) = factory() else { return Err(Undecided("the engine could not be started".to_owned())) };
    let grammar = match syntax {
        Syntax::Lark => TopLevelGrammar::from_lark(definition.to_owned()),
        Syntax::Regex => TopLevelGrammar::from_regex(definition),
    };
    let compile = || {
        let mut parser = factory.create_parser(grammar)?;
        parser.start_without_prompt();
        // With the first mask the lexer has its limits.
        parser.compute_mask()?;
        Ok(parser)
    };
    let parser = panic_utils::catch_unwind(AssertUnwindSafe(compile)).map_err(|error| undecided(&error.to_string()))?;
    let grammar = parser.parser.grammar();
    if grammar.parametric() || grammar.lexer_spec().has_stop {
        return Err(Undecided("the grammar stops lazily, or has parameters".to_owned()));
    }
    let ways = if is_right_recursive(grammar) { limits::ALL_WAYS_RIGHT } else { limits::ALL_WAYS };
    // The lexer says what it takes; the rules have about 64 bytes for each symbol.
    let bytes = parser.parser.lexer_stats().num_bytes + definition.len() * 64 + (16 << 10);
    Ok(Compiled { parser: Arc::new(parser), bytes, ways })
}

fn factory() -> Option<&'static ParserFactory> {
    static FACTORY: OnceLock<Option<ParserFactory>> = OnceLock::new();
    let make = || {
        let mut words: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
        words.push(b"\xFF<|end|>".to_vec());
        let info = TokRxInfo::new(END + 1, END);
        // Not canonical: nothing is read that was not given, even where only one byte can follow.
        let bytes: TokEnv = Arc::new(ApproximateTokEnv::new(TokTrie::from(&info, &words)));
        let mut factory = ParserFactory::new(&bytes, InferenceCapabilities::default(), &[]).ok()?;
        factory.quiet();
        *factory.limits_mut() = ParserLimits {
            max_items_in_row: limits::WAYS,
            initial_lexer_fuel: limits::COMPILE_FUEL,
            step_lexer_fuel: limits::FUEL,
            step_max_items: limits::ALL_WAYS_RIGHT,
            max_lexer_states: limits::STATES,
            max_grammar_size: limits::SYMBOLS,
            precompute_large_lexemes: false,
            verbose_errors: false,
        };
        Some(factory)
    };
    FACTORY.get_or_init(make).as_ref()
}

/// Whether a rule can end with itself, over any number of others. Then any number of rules can end at one place, and
/// what that costs grows with the square of it.
fn is_right_recursive(grammar: &CGrammar) -> bool {
    let mut last: HashMap<usize, Vec<CSymIdx>> = HashMap::new();
    let mut seen = HashSet::from([grammar.start().as_index()]);
    let mut queue = vec![grammar.start()];
    while let Some(symbol) = queue.pop() {
        for &rule in grammar.rules_of(symbol) {
            let (symbols, _, _) = grammar.rule_rhs(rule);
            queue.extend(symbols.iter().filter(|symbol| seen.insert(symbol.as_index())));
            for &ends in symbols.iter().rev() {
                last.entry(symbol.as_index()).or_default().push(ends);
                if !grammar.sym_data(ends).is_nullable {
                    break;
                }
            }
        }
    }
    // What can only end with what ends is taken away, until nothing is left, or a circle.
    let mut ends_in: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut open: HashMap<usize, usize> = seen.iter().map(|&symbol| (symbol, 0)).collect();
    for (&symbol, ends) in &last {
        let ends: HashSet<usize> = ends.iter().map(CSymIdx::as_index).collect();
        open.insert(symbol, ends.len());
        for end in ends {
            ends_in.entry(end).or_default().push(symbol);
        }
    }
    let mut done: Vec<usize> = open.iter().filter(|&(_, &count)| count == 0).map(|(&symbol, _)| symbol).collect();
    let mut left = open.len();
    while let Some(symbol) = done.pop() {
        left -= 1;
        for &before in ends_in.get(&symbol).into_iter().flatten() {
            if let Some(count) = open.get_mut(&before) {
                *count -= 1;
                if *count == 0 {
                    done.push(before);
                }
            }
        }
    }
    left > 0
}

/// What reads one input.
#[derive(Clone)]
pub(crate) struct Parser {
    inner: TokenParser,
    most: usize,
}

impl Parser {
    /// Reads on: how many of these bytes fit, and whether more may; or that it cannot be told.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> (usize, Result<bool, Undecided>) {
        let before = self.read();
        let mut given = before;
        for step in bytes.chunks(STEP) {
            given += step.len();
            // No token's bytes: what is read is text.
            let parser = &mut self.inner.parser;
            let read = panic_utils::catch_unwind(AssertUnwindSafe(|| parser.apply_token(step, END)));
            let fits = self.read() == given && read.as_ref().is_ok_and(|&back| back == 0);
            if let Some(spent) = self.spent() {
                return (self.read() - before, Err(spent));
            }
            match read {
                _ if fits => {}
                // It says so where it has read all, and where something in it is broken.
                Err(error) if self.read() == given || error.to_string().starts_with("panic") => {
                    return (self.read() - before, Err(undecided(&error.to_string())));
                }
                _ => return (self.read() - before, Ok(false)),
            }
        }
        (self.read() - before, Ok(true))
    }

    /// Whether the input may end here.
    pub(crate) fn may_end(&mut self) -> Result<bool, Undecided> {
        let parser = &mut self.inner.parser;
        let ends = panic_utils::catch_unwind(AssertUnwindSafe(|| Ok(parser.is_accepting())));
        match (ends, self.spent()) {
            (_, Some(spent)) => Err(spent),
            (Ok(ends), None) => Ok(ends),
            (Err(error), None) => Err(undecided(&error.to_string())),
        }
    }

    /// What could follow, where that is little: texts that must, or single bytes.
    pub(crate) fn expected(&mut self) -> Vec<String> {
        let mut ahead = self.inner.clone();
        let forced = panic_utils::catch_unwind(AssertUnwindSafe(|| Ok(ahead.force_bytes())));
        let forced = forced.ok().and_then(|bytes| String::from_utf8(bytes).ok()).filter(|text| !text.is_empty());
        if let Some(text) = forced {
            return vec![text];
        }
        let parser = &mut self.inner;
        let Ok(mask) = panic_utils::catch_unwind(AssertUnwindSafe(|| parser.compute_mask())) else { return Vec::new() };
        let bytes: Vec<u8> = (0..=u8::MAX).filter(|&byte| mask.is_allowed(byte.into())).collect();
        if bytes.len() > MOST_EXPECTED || !bytes.is_ascii() {
            return Vec::new();
        }
        bytes.into_iter().map(|byte| char::from(byte).to_string()).collect()
    }

    fn read(&self) -> usize {
        self.inner.parser.get_bytes().len()
    }

    /// How many ways to go on it has looked at.
    pub(crate) fn ways(&self) -> usize {
        self.inner.parser.stats().all_items
    }

    /// What it may cost is spent.
    fn spent(&self) -> Option<Undecided> {
        let error = panic_utils::catch_unwind(AssertUnwindSafe(|| Ok(self.inner.parser.get_error())));
        match error {
            Ok(Some(error)) => return Some(undecided(&error.message())),
            Err(error) => return Some(undecided(&error.to_string())),
            Ok(None) => {}
        }
        let most = self.most.min(limits::FEW_WAYS + self.read() * limits::WAYS_PER_BYTE);
        (self.ways() > most).then(|| Undecided(format!("there are too many ways to read the input: more than {most}")))
    }
}

/// What the engine says, on one line, without what only its authors can read.
fn undecided(error: &str) -> Undecided {
    let said = error.split("\n<").next().unwrap_or_default();
    let words: Vec<&str> = said.split_whitespace().collect();
    Undecided(words.join(" ").chars().take(MAX_MESSAGE).collect())
}

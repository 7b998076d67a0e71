//! What a reader is given beside the context that plan makes.

use std::sync::Arc;

use super::contract::{Checks, OutputCheck, Promise, Repair};
use super::held_text::HeldText;
use super::input::{InputCheck, Inputs};
use super::sources::Sources;
use crate::context::{InputGrammar, OutputContract};
use crate::dialect::AnswerDialect;
use crate::seal::{Seal, Unsealed};

/// How the upstream answers, who seals, who checks.
#[derive(Debug, Clone)]
pub struct Setup {
    pub dialect: Arc<AnswerDialect>,
    pub seal: Arc<dyn Seal>,
    /// Asked about the answer to a request with a JSON schema.
    pub check: Option<Arc<dyn OutputCheck>>,
    pub checks: Checks,
    pub repair: Repair,
    /// Asked about the inputs of custom tools with a grammar.
    pub inputs: Option<Arc<dyn InputCheck>>,
    /// Whether a call whose input does not fit may be asked for once more: then the answer ends as
    /// [`RoundEnd::Rejected`](super::RoundEnd::Rejected), if the call is its only one and the client has seen nothing of it.
    pub asks_input_again: bool,
    /// The addresses that may be cited, where there are any: links to them in the text become citations.
    pub sources: Option<Arc<Sources>>,
    /// The size of the chat request, for the estimate where the provider sends no usage.
    pub prompt_bytes: usize,
}

impl Setup {
    /// What was promised of the text. In what was promised as JSON there is nothing to be cited: a link in it is data.
    pub(super) fn promise(&mut self, output: OutputContract) -> Promise {
        let promise = Promise::new(output, self);
        if promise.is_made() || self.sources.as_ref().is_some_and(|sources| sources.is_empty()) {
            self.sources = None;
        }
        promise
    }

    /// How the beginning of the text is looked at: for tags, and for a fence around what was promised as JSON.
    pub(super) fn held_text(&self, promise: &Promise) -> HeldText {
        let unfences = promise.is_made() && (self.repair != Repair::Off || self.dialect.fenced_json);
        HeldText::new(self.dialect.think_tags, unfences)
    }

    /// How the inputs of custom tools are looked at.
    pub(super) fn input_checks(&self, grammars: Vec<InputGrammar>) -> Inputs {
        Inputs { check: self.inputs.clone(), grammars, asks_again: self.asks_input_again, ..Inputs::default() }
    }
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            dialect: Arc::default(),
            seal: Arc::new(Unsealed),
            check: None,
            checks: Checks::default(),
            repair: Repair::default(),
            inputs: None,
            asks_input_again: false,
            sources: None,
            prompt_bytes: 0,
        }
    }
}

//! What a reader is given beside the context that plan makes.

use std::sync::Arc;

use super::contract::{Checks, OutputCheck, Repair};
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
    /// The size of the chat request, for the estimate where the provider sends no usage.
    pub prompt_bytes: usize,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            dialect: Arc::default(),
            seal: Arc::new(Unsealed),
            check: None,
            checks: Checks::default(),
            repair: Repair::default(),
            prompt_bytes: 0,
        }
    }
}

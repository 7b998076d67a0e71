//! What an upstream says about its answer, and how much it says in it: the same of every wire.

use wire::json::{Kind, Raw};
use wire::responses::Usage;

use super::finish::Finish;
use super::ran::Ran;
use super::{Flow, RoundEnd, usage};
use crate::failure::Failure;
use crate::note::Action;
use crate::response::{PartKind, ResponseWriter};

/// What it says about the answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Report {
    pub(super) usage: Option<Usage>,
    pub(super) finish: Option<Finish>,
    pub(super) failure: Option<Failure>,
    pub(super) has_ended: bool,
    /// Tools that it ran itself.
    pub(super) ran: Ran,
}

impl Report {
    pub(super) fn fail(&mut self, failure: Failure) -> Flow {
        self.failure = Some(failure);
        Flow::Over
    }

    /// The last usage that can be read counts.
    pub(super) fn used(&mut self, raw: Option<Raw<'_>>) {
        if let Some(raw) = raw.filter(|raw| raw.kind() == Kind::Object) {
            self.usage = usage::read(raw).or(self.usage);
        }
    }

    /// What the answer cost: an estimate where the provider does not say. What failed has cost what is known.
    pub(super) fn cost(
        &self,
        end: &RoundEnd,
        prompt_bytes: usize,
        volume: Volume,
        response: &mut ResponseWriter,
    ) -> Option<Usage> {
        let known = self.usage.is_some_and(|usage| usage.total_tokens > 0);
        if known || matches!(end, RoundEnd::Failed(_)) {
            return self.usage;
        }
        response.remark(Action::Degraded, "usage", "the provider sent none that can be true: estimated from sizes");
        Some(usage::estimate(prompt_bytes, volume.answered, volume.reasoned))
    }
}

/// What the answer took so far, whatever becomes of it: as the provider says, else by sizes. Whether it is estimated.
pub(super) fn taken(report: &Report, prompt_bytes: usize, volume: Volume) -> (Usage, bool) {
    match report.usage.filter(|usage| usage.total_tokens > 0) {
        Some(usage) => (usage, false),
        None => (usage::estimate(prompt_bytes, volume.answered, volume.reasoned), true),
    }
}

/// How many bytes an answer has.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Volume {
    pub(super) answered: usize,
    pub(super) reasoned: usize,
}

impl Volume {
    pub(super) const fn add(&mut self, kind: PartKind, bytes: usize) {
        match kind {
            PartKind::Reasoning | PartKind::Summary => self.reasoned += bytes,
            PartKind::Text | PartKind::Refusal => self.answered += bytes,
        }
    }

    pub(super) const fn is_empty(self) -> bool {
        self.answered + self.reasoned == 0
    }
}

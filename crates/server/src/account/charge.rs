//! What upstream answers and hosted tools have used for one request, and what that costs.

use tokio::time::Instant;

use super::Entries;
use crate::spending::Used;
use crate::trace::Charge;

impl Entries {
    /// What the turn has really used is known now.
    pub(super) fn settle(&mut self, charges: &[Charge], now: Instant) {
        let tokens = |charge: &Charge| charge.usage.input_tokens.saturating_add(charge.usage.output_tokens);
        if let Some(permit) = self.permit.take() {
            let used = (!charges.is_empty()).then(|| charges.iter().map(tokens).fold(0, u64::saturating_add));
            permit.settle(used, now);
        }
    }

    pub(super) fn charge(&mut self, charge: Charge) {
        if let (Some(spending), Some(caller)) = (&self.spending, &self.facts.caller) {
            let Charge { provider, model, usage, nanodollars, tool_calls, .. } = &charge;
            spending.add(&Used {
                tenant: caller.tenant().name(),
                key: caller.grant().map_or("", |grant| &grant.id),
                limited_as: caller.grant().map_or("", |grant| grant.limited_as()),
                provider,
                model,
                usage: *usage,
                nanodollars: *nanodollars,
                tool_calls: *tool_calls,
            });
        }
        let same = |known: &&mut Charge| known.provider == charge.provider && known.model == charge.model;
        match self.facts.charges.iter_mut().find(same) {
            Some(known) => {
                known.usage = known.usage.plus(charge.usage);
                known.estimated |= charge.estimated;
                known.nanodollars =
                    known.nanodollars.zip(charge.nanodollars).map(|(one, other)| one.saturating_add(other));
                known.tool_calls += charge.tool_calls;
            }
            None => self.facts.charges.push(charge),
        }
    }
}

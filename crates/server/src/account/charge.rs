//! What upstream answers and hosted tools have used for one request, and what that costs.

use wire::responses::Usage;

use super::Entries;
use crate::spending::Used;

/// What one upstream answer has used, also one of godex's own questions.
#[derive(Debug, Clone)]
pub(crate) struct Charge {
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) usage: Usage,
    /// The provider did not say.
    pub(crate) estimated: bool,
    /// None: its price is not known.
    pub(crate) nanodollars: Option<u64>,
    pub(crate) tool_calls: u64,
}

impl Charge {
    /// A call of a hosted tool.
    pub(crate) fn of_call(service: &str, tool: &str, nanodollars: Option<u64>) -> Self {
        let (provider, model, usage) = (service.to_owned(), tool.to_owned(), Usage::default());
        Self { provider, model, usage, estimated: false, nanodollars, tool_calls: 1 }
    }
}

impl Entries {
    /// What the turn has really used is known now.
    pub(super) fn settle(self) {
        let tokens = |charge: &Charge| charge.usage.input_tokens + charge.usage.output_tokens;
        if let Some(permit) = self.permit {
            permit.settle((!self.charges.is_empty()).then(|| self.charges.iter().map(tokens).sum()));
        }
    }

    pub(super) fn charge(&mut self, charge: Charge) {
        if let (Some(spending), Some(caller)) = (&self.spending, &self.caller) {
            let Charge { provider, model, usage, nanodollars, tool_calls, .. } = &charge;
            spending.add(&Used {
                tenant: caller.tenant().name(),
                key: caller.grant().map_or("", |grant| &grant.id),
                provider,
                model,
                usage: *usage,
                nanodollars: *nanodollars,
                tool_calls: *tool_calls,
            });
        }
        let same = |known: &&mut Charge| known.provider == charge.provider && known.model == charge.model;
        match self.charges.iter_mut().find(same) {
            Some(known) => {
                known.usage = known.usage.plus(charge.usage);
                known.estimated |= charge.estimated;
                known.nanodollars =
                    known.nanodollars.zip(charge.nanodollars).map(|(one, other)| one.saturating_add(other));
                known.tool_calls += charge.tool_calls;
            }
            None => self.charges.push(charge),
        }
    }

    /// What it cost, as far as prices are known; None if none is.
    pub(super) fn cost(&self) -> Option<u64> {
        self.charges.iter().filter_map(|charge| charge.nanodollars).reduce(u64::saturating_add)
    }
}

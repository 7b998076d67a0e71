//! What a request would become: it is planned as a turn would be, for one model after the other, with all that it
//! continues. Nobody is asked, and nothing is stored or locked.

use bridge::{Link, Needs, Note, Round};
use bytes::Bytes;
use providers::Wire;
use store::Item;
use wire::json::{Kept, Raw};
use wire::responses::CreateResponse;

use super::files;
use super::open::{check, unasked_targets_of};
use crate::ask::{Asked, attempt};
use crate::body;
use crate::error::ApiError;
use crate::hosted::Hosted;
use crate::request::RequestContext;
use crate::session::{Context, Past};
use crate::upstream::Failover;

/// A request with what it continues.
#[derive(Debug)]
pub(crate) struct Question {
    bytes: Bytes,
    past: Context,
}

/// What it becomes for one model.
#[derive(Debug)]
pub(crate) struct Explained {
    pub(crate) provider: String,
    /// As the provider knows it.
    pub(crate) model: String,
    pub(crate) wire: Wire,
    pub(crate) plan: Result<ExplainedPlan, ApiError>,
}

#[derive(Debug)]
pub(crate) struct ExplainedPlan {
    pub(crate) body: Vec<u8>,
    pub(crate) notes: Vec<Note>,
    pub(crate) links: Vec<Link>,
}

impl Question {
    /// Reads what the request continues.
    pub(crate) async fn open(context: &RequestContext, bytes: Bytes, past: Past) -> Result<Self, ApiError> {
        let Kept { value: request, .. } = read(&bytes)?;
        check(&request)?;
        let past = context.session().context(&request, past).await?;
        Ok(Self { bytes, past })
    }

    /// What came before, as it is stored.
    pub(crate) fn past(&self) -> &[Item] {
        self.past.past_items()
    }

    /// Plans it for whoever would be asked first for this model.
    pub(crate) async fn plan(&self, context: &RequestContext, model: &str) -> Result<Explained, ApiError> {
        let mut failover = unasked_targets_of(context, model)?;
        let plan = Box::pin(self.explain(context, &mut failover)).await;
        let (provider, model) = (failover.provider().name.clone(), failover.model().to_owned());
        Ok(Explained { provider, model, wire: failover.wire(), plan })
    }

    async fn explain(&self, context: &RequestContext, failover: &mut Failover) -> Result<ExplainedPlan, ApiError> {
        let Kept { raw: document, value: mut request } = read(&self.bytes)?;
        self.past.refer(&mut request)?;
        let items = self.past.past()?;
        failover.require(|| Needs::of(&request, &items));
        files::read(context, failover, &request, &items).await;
        let policy = context.snapshot.policy(&context.caller);
        loop {
            let hosted = Hosted::of(&request, failover, context)?;
            if let Some(hosted) = &hosted {
                hosted.look_at(&items, &request);
            }
            // Servers are not asked for their tools: what is not listed yet is not in the plan.
            let hosting = hosted.as_deref().map(|hosted| hosted.hosting(Round::First, 0, true));
            let hosted = (hosted.as_deref(), hosting.unwrap_or_default());
            let asked = Asked { request: &request, document, past: &items, policy, hosted, asks_input_again: false };
            match attempt::explained(context, failover, &asked) {
                Err(error) if failover.unfit().is_err() => return Err(error),
                Err(_) => {}
                Ok((plan, links)) => {
                    let mut notes = plan.notes;
                    notes.extend(self.past.notes());
                    return Ok(ExplainedPlan { body: plan.body, notes, links });
                }
            }
        }
    }
}

/// What is only looked at is stored nowhere, and is no turn of its conversation.
fn read(bytes: &Bytes) -> Result<Kept<'_, CreateResponse<'_>>, ApiError> {
    let mut read = body::parse::<Kept<'_, CreateResponse<'_>>>(bytes)?;
    let request = &mut read.value;
    (request.store, request.background) = (Some(false), None);
    // The plan names the target's own model.
    request.model = request.model.or(Raw::ours("\"default\"").text());
    Ok(read)
}

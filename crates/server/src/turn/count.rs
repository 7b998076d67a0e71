//! How many tokens a request has: it is planned as a turn would be, for the target that would be asked first, with all
//! that it continues. Nobody is asked, and nothing is stored or locked.

use bridge::{Action, Needs, Note, Round, Severity};
use bytes::Bytes;
use wire::json::{Kept, Raw};
use wire::responses::{CreateResponse, Input};

use super::files;
use super::open::{check, targets_of, unasked_targets_of};
use crate::ask::{Asked, attempt};
use crate::body;
use crate::error::ApiError;
use crate::hosted::Hosted;
use crate::request::RequestContext;
use crate::session::Past;
use crate::tokens::Count;

/// What was counted, and what was not done as asked.
#[derive(Debug)]
pub(crate) struct Counted {
    pub(crate) count: Count,
    pub(crate) notes: Vec<Note>,
}

/// Counts the input of a create request, of which nothing has to be there.
pub(crate) async fn count_input(context: &RequestContext, bytes: &Bytes) -> Result<Counted, ApiError> {
    let Kept { raw: document, value: mut request } = body::parse::<Kept<'_, CreateResponse<'_>>>(bytes)?;
    // What is only counted is no turn of its conversation.
    (request.store, request.background) = (Some(false), None);
    check(&request)?;
    let mut failover = match request.model {
        Some(model) => targets_of(context, &model.decode())?,
        // Whatever it is called: the provider that gets what names nobody else.
        None => {
            let model = context.snapshot.config.sample_model().unwrap_or_else(|| "default".to_owned());
            unasked_targets_of(context, &model)?
        }
    };
    // The plan names the target's own model.
    request.model = request.model.or(Raw::ours("\"default\"").text());
    let past = context.session().context(&request, Past::Stored).await?;
    past.refer(&mut request)?;
    let items = past.past()?;
    if items.is_empty() && request.input.is_none() && request.instructions.is_none() {
        request.input = Raw::ours("\"\"").text().map(Input::Text);
    }
    failover.require(|| Needs::of(&request, &items));
    Box::pin(files::read(context, &failover, &request, &items)).await;
    let policy = context.snapshot.policy(&context.caller);
    let hosted = Hosted::of(&request, &failover, context)?;
    if let Some(hosted) = &hosted {
        hosted.look_at(&items, &request);
    }
    // Tools that nobody has listed yet are not counted.
    let hosting = hosted.as_deref().map(|hosted| hosted.hosting(Round::First, 0, true));
    let hosted = (hosted.as_deref(), hosting.unwrap_or_default());
    let asked = Asked { request: &request, document, past: &items, policy, hosted, asks_input_again: false };
    let attempt::Planned { body, mut notes, .. } = attempt::preview(context, &mut failover, &asked)?;
    let (provider, tokenizer) = (&failover.provider().name, failover.dialect().tokenizer);
    let count = context.tokens().count(provider, failover.model(), tokenizer, &body);
    notes.extend(past.notes());
    if !count.exact {
        let message = "estimated: the model's tokenizer is not known here, or not all of the input is text";
        notes.push(Note::new(Action::Degraded, "input_tokens", message).with_severity(Severity::Info));
    }
    Ok(Counted { count, notes })
}

//! An attempt of a request with `truncation: auto`: what is too long for the model is sent without its oldest turns. Where
//! nobody knows what the model takes, it is sent whole, and shorter if it is refused for its length; so often, and then
//! the refusal counts.

use bridge::{Action, FailureClass, Note};
use wire::responses::{CreateResponse, Input, InputItem};

use crate::ask::{Asked, Attempt, Unanswered, attempt};
use crate::compaction::{Truncation, body_tokens};
use crate::request::RequestContext;
use crate::upstream::Failover;

/// How often a refused request is halved.
const HALVINGS: u32 = 4;

/// Plans and sends, like [`attempt::send`], as much of it as fits.
pub(super) async fn send(
    context: &RequestContext,
    failover: &mut Failover,
    asked: &Asked<'_, '_>,
) -> Result<Attempt, Unanswered> {
    if !asked.request.truncation.is_some_and(|truncation| truncation.is("auto")) {
        return attempt::send(context, failover, asked).await;
    }
    let truncation = Truncation::of(asked.request, asked.past, &context.app.runtime.seal(&context.caller));
    let mut room = room(context, failover, asked, &truncation);
    let mut halved = 0;
    loop {
        let sent = room.and_then(|room| truncation.within(room));
        let shorter = sent.as_deref().map(|sent| Shorter::of(asked, sent));
        let came = match &shorter {
            Some(shorter) => attempt::send(context, failover, &shorter.asked(asked)).await,
            None => attempt::send(context, failover, asked).await,
        };
        let refused = match came {
            Ok(mut attempt) => {
                attempt.notes.extend(sent.as_deref().map(note));
                return Ok(attempt);
            }
            Err(Unanswered::Refused(refused, notes)) if refused.failure.class == FailureClass::ContextOverflow => {
                Unanswered::Refused(refused, notes)
            }
            Err(unanswered) => return Err(unanswered),
        };
        let less = room.unwrap_or_else(|| truncation.weight()) / 2;
        halved += 1;
        if halved > HALVINGS || truncation.within(less) == sent {
            return Err(refused);
        }
        room = Some(less);
        failover.next_round();
    }
}

/// How much of it may be sent, by the weight of items; none if all of it may.
fn room(context: &RequestContext, failover: &Failover, asked: &Asked<'_, '_>, truncation: &Truncation) -> Option<u64> {
    let window = failover.context_window()?;
    // The answer needs room, too.
    let answer = asked.request.max_output_tokens.and_then(|most| u64::try_from(most).ok()).unwrap_or(window / 8);
    let room = window - answer.min(window / 2);
    let body = attempt::body(context, failover, asked).ok()?;
    let counted = body_tokens(context, failover, &body, room);
    (counted > room).then(|| scaled(room, truncation.weight(), counted))
}

/// The room as items weigh, of which so much weight was counted to be so many tokens. In steps, so that it stays the same
/// while counts change a little from turn to turn.
fn scaled(room: u64, weight: u64, counted: u64) -> u64 {
    let mut room = u128::from(room);
    let (mut weight, counted) = (u128::from(weight.max(1)), u128::from(counted));
    // A token weighs less than one: the room is smaller.
    while weight * 4 / 3 < counted && room > 0 {
        (weight, room) = (weight * 5 / 4 + 1, room * 4 / 5);
    }
    while weight > counted * 4 / 3 + 1 {
        (weight, room) = (weight * 4 / 5, room * 5 / 4);
    }
    u64::try_from(room).unwrap_or(u64::MAX)
}

fn note(sent: &[bool]) -> Note {
    let left_out = sent.iter().filter(|sent| !**sent).count();
    Note::new(
        Action::Degraded,
        "truncation",
        format!("the oldest {left_out} items are left out: too long for the model"),
    )
}

/// The same request with fewer items.
struct Shorter<'a> {
    request: CreateResponse<'a>,
    past: Vec<InputItem<'a>>,
}

impl<'a> Shorter<'a> {
    fn of(asked: &Asked<'_, 'a>, sent: &[bool]) -> Self {
        let of = |items: &[InputItem<'a>], sent: &[bool]| -> Vec<InputItem<'a>> {
            items.iter().zip(sent).filter(|(_, sent)| **sent).map(|(item, _)| item.clone()).collect()
        };
        let (of_past, of_input) = sent.split_at(asked.past.len().min(sent.len()));
        let mut request = asked.request.clone();
        if let Some(Input::Items(items)) = &mut request.input {
            *items = of(items, of_input);
        }
        Self { request, past: of(asked.past, of_past) }
    }

    fn asked<'r>(&'r self, asked: &Asked<'r, 'a>) -> Asked<'r, 'a> {
        Asked { request: &self.request, past: &self.past, ..*asked }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_moves_in_steps() {
        assert_eq!(scaled(1000, 2000, 2000), 1000);
        assert_eq!(scaled(1000, 2000, 2500), 1000);
        assert_eq!(scaled(1000, 2000, 1600), 1000);
        assert_eq!(scaled(1000, 2000, 4000), 640);
        assert_eq!(scaled(1000, 2000, 4100), 640);
        assert_eq!(scaled(1000, 2000, 1000), 1562);
        assert_eq!(scaled(1000, 0, u64::MAX), 0);
    }
}

//! Approvals of calls of MCP tools: the ids by which they are asked for, which of them a request gives, and that each is used
//! once. Which calls need one is for `mcp` to say, and nothing is run here.
//!
//! Who approves also says what was asked: the request may come out of the client's own history. So its id has a code in it,
//! over what it asks for, that only this server makes, for this tenant. The id has the moment of its making as well: a
//! request can be approved for some time, and for so long it is remembered that it was.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use aws_lc_rs::{constant_time, digest};
use wire::id::{Id, IdKind};
use wire::json::Text;
use wire::responses::{InputItem, Item, McpApprovalRequest};

use crate::clock;
use crate::error::{ApiError, Code, clip};
use crate::idempotency::{HeldUse, NewUse, Use};
use crate::request::RequestContext;
use crate::seal::TenantSeal;

/// How long a request can be approved.
const LIVES: Duration = Duration::from_hours(90 * 24);

/// What the code is over, in general.
const PURPOSE: &str = "mcp approval request";

/// The bytes of an id that no other request has: the moment, and a hash.
const OWN: usize = 12;
const MOMENT: usize = 6;

/// A call that was approved and is to be run now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Approved {
    /// Of the `mcp_approval_request`.
    pub(crate) request_id: String,
    pub(crate) server_label: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
    /// How the model called it, where that is known.
    pub(crate) call_id: Option<String>,
}

/// An approval that is this response's to use. It is used up when it is kept, which has to be before anything is sent to the
/// server; dropped before that, it can be used again.
pub(crate) type HeldApproval = HeldUse;

/// The id of a request for an approval. `fresh`: an id that nothing else has.
pub(crate) fn make(seal: &TenantSeal, fresh: &Id, label: &str, tool: &str, arguments: &str) -> Id {
    make_at(clock::unix_millis(), seal, fresh, label, tool, arguments)
}

fn make_at(moment: u64, seal: &TenantSeal, fresh: &Id, label: &str, tool: &str, arguments: &str) -> Id {
    let hash = digest::digest(&digest::SHA256, fresh.as_str().as_bytes());
    let mut bytes = [0; 24];
    let (own, code) = bytes.split_at_mut(OWN);
    let moment = moment.to_be_bytes();
    for (byte, value) in own.iter_mut().zip(moment[moment.len() - MOMENT..].iter().chain(hash.as_ref())) {
        *byte = *value;
    }
    let whole = mac(seal, own, label, tool, arguments);
    code.iter_mut().zip(whole).for_each(|(byte, value)| *byte = value);
    Id::of(IdKind::McpApprovalRequest, bytes)
}

fn mac(seal: &TenantSeal, own: &[u8], label: &str, tool: &str, arguments: &str) -> [u8; 32] {
    seal.mac(PURPOSE, &[own, label.as_bytes(), tool.as_bytes(), arguments.as_bytes()])
}

/// Whether this server made the id, for this tenant and for exactly this call.
pub(crate) fn is_ours(seal: &TenantSeal, id: &str, label: &str, tool: &str, arguments: &str) -> bool {
    let Some(bytes) = Id::bytes(id, IdKind::McpApprovalRequest) else { return false };
    let (own, code) = bytes.split_at(OWN);
    let whole = mac(seal, own, label, tool, arguments);
    constant_time::verify_slices_are_equal(code, &whole[..code.len()]).is_ok()
}

/// When an id of ours was made.
fn moment(id: &str) -> u64 {
    let bytes = Id::bytes(id, IdKind::McpApprovalRequest).unwrap_or_default();
    bytes[..MOMENT].iter().fold(0, |moment, byte| moment << 8 | u64::from(*byte))
}

/// The calls that this input approves and that have not been run yet, in the order of the approvals. References in the input
/// are resolved. With `mend`, what answers no known request is left alone.
///
/// What was denied, and what has its call in the context, runs nothing; so it may also be of another server's making, as a
/// history that began elsewhere has it.
pub(crate) fn pending(
    seal: &TenantSeal,
    past: &[InputItem<'_>],
    input: &[InputItem<'_>],
    mend: bool,
) -> Result<Vec<Approved>, ApiError> {
    pending_at(clock::unix_millis(), seal, past, input, mend)
}

fn pending_at(
    now: u64,
    seal: &TenantSeal,
    past: &[InputItem<'_>],
    input: &[InputItem<'_>],
    mend: bool,
) -> Result<Vec<Approved>, ApiError> {
    let answers: Vec<(Cow<'_, str>, bool)> = input.iter().filter_map(answer).collect();
    if answers.is_empty() {
        return Ok(Vec::new());
    }
    let (called, requests) = asked(past, input);
    let mut seen = HashSet::new();
    let mut approved = Vec::new();
    for (id, approve) in answers.iter().filter(|(id, _)| !called.contains(id)) {
        if !seen.insert(id) {
            return Err(invalid(id, "has more than one approval response in the input. Send one."));
        }
        match requests.get(id).map(Vec::as_slice) {
            None if mend => {}
            None => return Err(unknown(id)),
            Some(found) if *approve => approved.push(checked(now, seal, id, found)?),
            Some(_) => {}
        }
    }
    Ok(approved)
}

/// The request that an item answers, and whether it approves.
fn answer<'a>(item: &InputItem<'a>) -> Option<(Cow<'a, str>, bool)> {
    match &item.value {
        Item::McpApprovalResponse(response) => {
            Some((response.approval_request_id.map(Text::decode).unwrap_or_default(), response.approve == Some(true)))
        }
        _ => None,
    }
}

type Requests<'i, 'a> = HashMap<Cow<'a, str>, Vec<&'i McpApprovalRequest<'a>>>;

/// The requests whose calls were run, and all requests.
fn asked<'i, 'a>(past: &'i [InputItem<'a>], input: &'i [InputItem<'a>]) -> (HashSet<Cow<'a, str>>, Requests<'i, 'a>) {
    let (mut called, mut requests) = (HashSet::new(), Requests::new());
    for item in past.iter().chain(input) {
        match &item.value {
            Item::McpCall(call) => called.extend(call.approval_request_id.map(Text::decode)),
            Item::McpApprovalRequest(request) => {
                let id = request.id.map(Text::decode).unwrap_or_default();
                requests.entry(id).or_default().push(request);
            }
            _ => {}
        }
    }
    (called, requests)
}

/// The call that was asked for. Where the context has the request more than once, each must be as it was made.
fn checked(now: u64, seal: &TenantSeal, id: &str, found: &[&McpApprovalRequest<'_>]) -> Result<Approved, ApiError> {
    let text = |text: Option<Text<'_>>| text.map(Text::decode).unwrap_or_default().into_owned();
    let mut approved = None;
    for request in found {
        let call_id = request.godex_output.as_ref().and_then(|kept| kept.call_id);
        let this = Approved {
            request_id: id.to_owned(),
            server_label: text(request.server_label),
            name: text(request.name),
            arguments: text(request.arguments),
            call_id: call_id.map(|id| id.decode().into_owned()),
        };
        if !is_ours(seal, id, &this.server_label, &this.name, &this.arguments) {
            return Err(invalid(
                id,
                "was not made by this server for this caller, or was changed since. Let the model ask again.",
            ));
        }
        // Only the stored one knows how the model called it.
        if approved.as_ref().is_none_or(|other: &Approved| other.call_id.is_none()) {
            approved = Some(this);
        }
    }
    if Duration::from_millis(now.saturating_sub(moment(id))) > LIVES {
        let days = LIVES.as_secs() / (24 * 60 * 60);
        return Err(invalid(
            id,
            &format!("is older than the {days} days for which it can be approved. Let the model ask again."),
        ));
    }
    approved.ok_or_else(|| unknown(id))
}

fn invalid(id: &str, what: &str) -> ApiError {
    let message = format!("The MCP approval request '{}' {what}", clip(id));
    ApiError::new(Code::McpApprovalInvalid, message).with_param("input")
}

fn unknown(id: &str) -> ApiError {
    let message = format!(
        "The following MCP approval requests have approval responses but weren't passed as input: '{}'. Send the request \
         with its response, or continue the response that has it.",
        clip(id)
    );
    ApiError::new(Code::McpApprovalInvalid, message).with_param("input")
}

/// Takes the approval for this response, before its call is run. `stored`: whether the response is to be stored; of one that
/// is not, nothing is written, and only this process knows that the approval was used.
pub(crate) async fn claim(
    context: &RequestContext,
    approved: &Approved,
    response_id: &Id,
    stored: bool,
) -> Result<HeldApproval, ApiError> {
    let session = context.session();
    // With a blank, which no client's key has.
    let name = format!("mcp_approval {}", approved.request_id);
    let (tenant, response) = (context.caller.tenant(), response_id.as_str());
    // Requests are made by clocks of several machines.
    let keep = LIVES + Duration::from_hours(24);
    let new = NewUse { name: &name, response, tenant, store: session.store(), written: stored, keep };
    let used = context.app.runtime.keys.use_up(new).await;
    match session.observe(used, || ApiError::response_not_found(response))? {
        Use::Ours(held) => Ok(held),
        Use::Used(by) => {
            let message = format!(
                "The approval of the MCP approval request '{}' was used by the response '{by}'. An approval runs one call: \
                 continue that response, or let the model ask again.",
                clip(&approved.request_id)
            );
            Err(ApiError::new(Code::McpApprovalUsed, message).with_param("input"))
        }
    }
}

#[cfg(test)]
mod tests;

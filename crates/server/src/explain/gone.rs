//! What a request names and the store does not have: its past, items that it refers to. It can be planned without them, and
//! shown as it was asked; that plan is not what was sent.

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use wire::json::{FromRaw, InvalidCode, Raw, Text};
use wire::responses::Item;

use crate::error::{ApiError, Code};
use crate::request::RequestContext;
use crate::session::own_id;

/// What names the past of a request.
const PAST: [&str; 2] = ["conversation", "previous_response_id"];

/// What was taken out of a request.
#[derive(Debug, Default)]
pub(super) struct Gone {
    past: Map<String, Value>,
    /// By their places in the input, the first one first.
    references: Vec<(usize, Value)>,
}

impl Gone {
    /// Takes out of the request what this error says is not there. Whether that was anything.
    pub(super) async fn take(
        &mut self,
        error: &ApiError,
        request: &mut Value,
        context: &RequestContext,
    ) -> Result<bool, ApiError> {
        Ok(match error.code {
            Code::ChainNotFound | Code::ChainDeletedAncestor | Code::ConversationNotFound => self.take_past(request),
            // What cannot be the id of any conversation is none's.
            Code::Invalid(InvalidCode::InvalidValue) if error.param.as_deref() == Some("conversation") => {
                self.take_past(request)
            }
            Code::ItemNotFound => self.take_references(request, context).await?,
            _ => false,
        })
    }

    /// Takes out whatever names the past.
    pub(super) fn take_past(&mut self, request: &mut Value) -> bool {
        let Some(members) = request.as_object_mut() else { return false };
        for name in PAST {
            let named = members.remove(name).filter(|value| !value.is_null());
            self.past.extend(named.map(|value| (name.to_owned(), value)));
        }
        !self.past.is_empty()
    }

    /// Takes out the references to items that nobody has, all at once. Whether there were any.
    async fn take_references(&mut self, request: &mut Value, context: &RequestContext) -> Result<bool, ApiError> {
        let Some(items) = request["input"].as_array_mut().filter(|_| self.references.is_empty()) else {
            return Ok(false);
        };
        let (named, own): (Vec<_>, Vec<_>) = items.iter().map(id_of).partition(Id::is_reference);
        let named: Vec<String> = named.into_iter().filter_map(Id::text).collect();
        let mut known: HashSet<String> = own.into_iter().filter_map(Id::text).collect();
        let (session, room) = (context.session(), context.session().room());
        let found = session.reading(&room).items(named.clone()).await;
        let found = session.observe(found, || ApiError::item_not_found(""))?;
        known.extend(named.into_iter().zip(found).filter(|(_, item)| item.is_some()).map(|(id, _)| id));
        for (place, item) in std::mem::take(items).into_iter().enumerate() {
            match id_of(&item) {
                Id::Reference(id) if !known.contains(&id) => self.references.push((place, item)),
                _ => items.push(item),
            }
        }
        Ok(!self.references.is_empty())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.past.is_empty() && self.references.is_empty()
    }

    /// Whether the past is.
    pub(super) fn has_past(&self) -> bool {
        !self.past.is_empty()
    }

    /// The first of it, as the request names it.
    pub(super) fn first(&self) -> Option<&str> {
        let reference = self.references.first().map(|(_, item)| item);
        self.past.values().next().or(reference).map(|named| named.as_str().or(named["id"].as_str()).unwrap_or_default())
    }

    /// Puts it back for whoever looks at the request, and tells in its plan what was not there.
    pub(super) fn put_back(self, request: &mut Value, plan: &mut Value) {
        let places: Vec<usize> = self.references.iter().map(|(place, _)| *place).collect();
        for (list, member) in [("links", "item"), ("notes", "path")] {
            for told in plan[list].as_array_mut().into_iter().flatten() {
                let moved = told[member].as_str().and_then(|path| asked_at(path, &places));
                told[member] = moved.map_or_else(|| told[member].take(), Value::from);
            }
        }
        for (place, reference) in self.references {
            if let Some(links) = plan["links"].as_array_mut() {
                links.push(json!({"item": format!("input[{place}]"), "to": [], "left_out": NOT_STORED}));
            }
            if let Some(items) = request["input"].as_array_mut() {
                items.insert(place.min(items.len()), reference);
            }
        }
        if let Some(members) = request.as_object_mut() {
            members.extend(self.past);
        }
    }
}

const NOT_STORED: &str = "the item that it refers to is gone, or was never stored";

/// A path in a request from which items at these places, in order, were taken: where that was before.
fn asked_at(path: &str, taken: &[usize]) -> Option<String> {
    let (place, rest) = path.strip_prefix("input[")?.split_once(']')?;
    let mut place: usize = place.parse().ok()?;
    for taken in taken {
        place += usize::from(*taken <= place);
    }
    Some(format!("input[{place}]{rest}"))
}

/// What an item of the input is called, or refers to, as the session reads it.
enum Id {
    Reference(String),
    Own(Option<String>),
}

impl Id {
    const fn is_reference(&self) -> bool {
        matches!(self, Self::Reference(_))
    }

    fn text(self) -> Option<String> {
        match self {
            Self::Reference(id) => Some(id),
            Self::Own(id) => id,
        }
    }
}

fn id_of(item: &Value) -> Id {
    let text = item.to_string();
    let Ok(raw) = Raw::parse(&text) else { return Id::Own(None) };
    match Item::from_raw(raw) {
        Ok(Item::ItemReference(reference)) => {
            Id::Reference(reference.id.map(Text::decode).unwrap_or_default().into_owned())
        }
        _ => Id::Own(own_id(raw)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_out_is_put_back_where_it_was() {
        let mut request = json!({"model": "m", "conversation": {"id": "conv_1"}, "previous_response_id": null});
        let mut gone = Gone::default();
        assert!(gone.is_empty() && gone.take_past(&mut request) && gone.has_past());
        assert_eq!((&request, gone.first()), (&json!({"model": "m"}), Some("conv_1")));
        assert!(!Gone::default().take_past(&mut request));
        request["input"] = json!(["b", "e"]);
        gone.references = [(0, "a"), (2, "c"), (3, "d")].map(|(place, item)| (place, json!(item))).into();
        let mut plan = json!({
            "links": [{"item": "input[0]"}, {"item": "input[1]"}, {"item": "tools[0]"}],
            "notes": [{"path": "input[1].content[0]"}, {"path": "temperature"}],
        });
        gone.put_back(&mut request, &mut plan);
        assert_eq!(
            request,
            json!({"model": "m", "conversation": {"id": "conv_1"}, "input": ["a", "b", "c", "d", "e"]})
        );
        let of = |list: &str, member: &str| {
            let told = plan[list].as_array().unwrap().iter().map(|told| told[member].as_str().unwrap().to_owned());
            told.collect::<Vec<_>>()
        };
        assert_eq!(of("links", "item"), ["input[1]", "input[4]", "tools[0]", "input[0]", "input[2]", "input[3]"]);
        assert_eq!(of("notes", "path"), ["input[4].content[0]", "temperature"]);
        assert_eq!(plan["links"][5]["left_out"], NOT_STORED);
        // Of a request that could not be planned there are none.
        let mut plan = json!({"links": [], "notes": []});
        Gone { references: vec![(9, json!({"id": "msg_1"}))], ..Gone::default() }.put_back(&mut request, &mut plan);
        assert_eq!(request["input"][5]["id"], "msg_1");
    }

    #[test]
    fn a_reference_is_known_as_clients_write_it() {
        for (item, expected) in [
            (json!({"type": "item_reference", "id": "msg_1"}), true),
            (json!({"type": null, "id": "msg_1"}), true),
            (json!({"id": "msg_1"}), true),
            (json!({"id": "msg_1", "role": "user", "content": "Hi"}), false),
            (json!({"type": "message", "id": "msg_1"}), false),
            (json!({"id": "msg_1", "role": null}), false),
            (json!("Hi"), false),
        ] {
            assert_eq!(id_of(&item).is_reference(), expected, "{item}");
        }
    }
}

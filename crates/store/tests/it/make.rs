//! Turns and items, made shortly.

use bytes::Bytes;
use store::{ChainLimits, History, Item, NewTurn, Order, Page, Parent, Status, Store, Tenant, Tenanted};

pub(crate) const DEEP: ChainLimits = ChainLimits { max_depth: 100_000, settings: false };

/// A tenant of its own for each case, so that cases on one database do not meet.
pub(crate) fn tenant(store: &Store, name: &str) -> Tenanted {
    store.for_tenant(Tenant::new(name))
}

/// An item whose id and text are this name.
pub(crate) fn item(name: &str) -> Item {
    let body = format!(r#"{{"type":"message","role":"user","content":"{name}"}}"#);
    Item { id: format!("msg_{name}"), body: Bytes::from(body) }
}

pub(crate) fn items(names: &str) -> Vec<Item> {
    names.split_whitespace().map(item).collect()
}

pub(crate) fn turn(id: &str, input: &str, output: &str) -> NewTurn {
    NewTurn {
        id: id.to_owned(),
        parent: Parent::None,
        status: Status::Completed,
        created_at: 1_700_000_000_000,
        expires_at: None,
        head: Bytes::from(format!(r#"{{"id":"{id}","object":"response"}}"#)),
        settings: None,
        input: items(input),
        output: items(output),
        events: None,
        key: None,
    }
}

pub(crate) fn after(previous: &str, turn: NewTurn) -> NewTurn {
    NewTurn { parent: Parent::Response(previous.to_owned()), ..turn }
}

/// The names of the items, in order.
pub(crate) fn names(items: &[Item]) -> String {
    let names: Vec<&str> = items.iter().map(|item| item.id.trim_start_matches("msg_")).collect();
    names.join(" ")
}

pub(crate) async fn history(tenant: &Tenanted, id: &str) -> Result<String, store::Error> {
    tenant.history(id, DEEP).await.map(|History { items, .. }| names(&items))
}

pub(crate) fn page(limit: u32, order: Order, after: Option<&str>) -> Page {
    Page { limit, order, max_bytes: usize::MAX, after: after.map(str::to_owned) }
}

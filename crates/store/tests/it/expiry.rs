//! A turn that has expired is not there, on every road, long before a sweep removes it.

use bytes::Bytes;
use store::{Clock, Error, EventLimits, NewConversation, NewTurn, Order, Parent, Status, Store, Tenanted};

use crate::make::{DEEP, after, history, items, names, page, tenant, turn};
use crate::turns::{begun, ended, events};

const EXPIRES: i64 = 1_000;

fn at(store: &Store, now: i64) -> Tenanted {
    tenant(&store.clone().with_clock(Clock::new(move || now)), "expiry")
}

fn expiring(turn: NewTurn) -> NewTurn {
    NewTurn { expires_at: Some(EXPIRES), ..turn }
}

/// Every road that leads to a turn.
const ROADS: [&str; 11] = [
    "response",
    "history",
    "input_items",
    "items",
    "events_after",
    "append_events",
    "advance",
    "finish",
    "put",
    "begin",
    "delete_response",
];

/// Goes to the turns whose names begin with this number. The last ones change something.
async fn go(t: &Tenanted, road: &str, number: usize) -> Result<(), Error> {
    let (whole, running) = (format!("r{number}"), format!("b{number}"));
    let next = format!("next{number}");
    match road {
        "response" => t.response(&whole).await.map(drop),
        "history" => t.history(&whole, DEEP).await.map(drop),
        "input_items" => t.input_items(&whole, page(9, Order::OldestFirst, None)).await.map(drop),
        "items" => t.item(&format!("msg_a{number}")).await.map(drop),
        "events_after" => t.events_after(&running, None, EventLimits { events: 9, bytes: 9 }).await.map(drop),
        "append_events" => t.append_events(&running, &events(0, &["x"]), None).await,
        "advance" => t.advance(&running, Status::InProgress).await,
        "finish" => t.finish(ended(&running, "")).await,
        "put" => t.put(after(&whole, turn(&next, "v", "b"))).await,
        "begin" => t.begin(after(&whole, begun(&next, "v"))).await,
        _ => t.delete_response(&whole).await,
    }
}

pub(crate) async fn what_has_expired_is_not_there_on_any_road(store: Store) {
    let before = at(&store, EXPIRES - 1);
    for (number, road) in ROADS.into_iter().enumerate() {
        for number in [2 * number, 2 * number + 1] {
            let input = format!("u{number}");
            before.put(expiring(turn(&format!("r{number}"), &input, &format!("a{number}")))).await.unwrap();
            before.begin(expiring(begun(&format!("b{number}"), &format!("v{number}")))).await.unwrap();
        }
        go(&before, road, 2 * number).await.unwrap_or_else(|error| panic!("{road} before: {error}"));
        for now in [EXPIRES, EXPIRES + 1, i64::MAX] {
            let gone = go(&at(&store, now), road, 2 * number + 1).await;
            assert!(matches!(gone, Err(Error::NotFound)), "{road} at {now}: {gone:?}");
        }
        // Nobody has swept: who asks by an earlier clock finds it as it was.
        go(&before, road, 2 * number + 1).await.unwrap_or_else(|error| panic!("{road} again: {error}"));
    }
    // What lives keeps what it needs of those that do not, and conversations do not expire.
    let later = at(&store, EXPIRES);
    before.put(expiring(turn("old", "o1", "o2"))).await.unwrap();
    before.put(after("old", turn("young", "y1", "y2"))).await.unwrap();
    assert_eq!(history(&later, "young").await.unwrap(), "o1 o2 y1 y2");
    assert_eq!(later.item("msg_o1").await.unwrap().id, "msg_o1");
    let metadata = Bytes::from_static(b"{}");
    let new = NewConversation { id: "c".into(), created_at: 1, metadata, items: items("c0") };
    before.create_conversation(new).await.unwrap();
    let lease = before.begin_turn("c", std::time::Duration::from_mins(1)).await.unwrap();
    let said = NewTurn { parent: Parent::Conversation(lease), ..turn("said", "c1", "c2") };
    before.put(expiring(said)).await.unwrap();
    assert!(matches!(later.response("said").await, Err(Error::NotFound)));
    assert_eq!(names(&later.conversation_history("c").await.unwrap()), "c0 c1 c2");
    assert_eq!(
        names(&later.conversation_items("c", page(9, Order::OldestFirst, None)).await.unwrap().items),
        "c0 c1 c2"
    );
    for id in ["msg_c0", "msg_c1", "msg_c2"] {
        later.conversation_item("c", id).await.unwrap();
        later.item(id).await.unwrap();
    }
    // An id is not free again because its time is over.
    assert!(matches!(later.put(turn("old", "x", "y")).await, Err(Error::Conflict)));
}

/// A turn began before its parent expired, and ends after: sweeps leave it time for that.
pub(crate) async fn what_was_there_when_a_turn_began_can_be_continued(store: Store) {
    let t = at(&store, EXPIRES + 500);
    t.put(expiring(turn("parent", "u", "a"))).await.unwrap();
    let child = |id: &str, created_at| NewTurn { created_at, ..after("parent", turn(id, "v", "b")) };
    t.put(child("in time", EXPIRES - 1)).await.unwrap();
    assert_eq!(history(&t, "in time").await.unwrap(), "u a v b");
    for (id, created_at) in [("too late", EXPIRES), ("from the future", i64::MAX)] {
        assert!(matches!(t.put(child(id, created_at)).await, Err(Error::NotFound)), "{id}");
    }
}

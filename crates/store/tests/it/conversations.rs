//! What every backend promises of conversations.

use std::time::Duration;

use bytes::Bytes;
use store::{Error, NewConversation, NewTurn, Order, Parent, Store};

use crate::make::{DEEP, after, history, item, items, names, page, tenant, turn};

const LEASE: Duration = Duration::from_mins(1);

pub(crate) async fn conversations_live_and_die(store: Store) {
    let t = tenant(&store, "conversations");
    let new = |id: &str, names: &str| NewConversation {
        id: id.to_owned(),
        created_at: 77,
        metadata: Bytes::from_static(b"{\"a\":\"\\u0000\"}"),
        items: items(names),
    };
    t.create_conversation(new("c", "")).await.unwrap();
    assert!(matches!(t.create_conversation(new("c", "x")).await, Err(Error::Conflict)));
    let stored = t.conversation("c").await.unwrap();
    assert_eq!((stored.created_at, &stored.metadata[..]), (77, &b"{\"a\":\"\\u0000\"}"[..]));
    let updated = t.update_conversation("c", Bytes::from_static(b"{}")).await.unwrap();
    assert_eq!(updated, t.conversation("c").await.unwrap());
    assert_eq!(&updated.metadata[..], b"{}");
    // A turn in it, and a chain that leaves it.
    let lease = t.begin_turn("c", LEASE).await.unwrap();
    t.put(NewTurn { parent: Parent::Conversation(lease), ..turn("r1", "u1", "a1") }).await.unwrap();
    t.append_items("c", items("x2")).await.unwrap();
    t.put(after("r1", turn("r2", "u2", "a2"))).await.unwrap();
    assert_eq!(names(&t.conversation_history("c").await.unwrap()), "u1 a1 x2");
    assert_eq!(history(&t, "r2").await.unwrap(), "u1 a1 u2 a2");
    assert_eq!(t.response("r1").await.unwrap().conversation_id.as_deref(), Some("c"));
    t.delete_conversation("c").await.unwrap();
    assert!(matches!(t.conversation("c").await, Err(Error::NotFound)));
    assert_eq!(history(&t, "r2").await.unwrap(), "u1 a1 u2 a2", "responses outlive their conversation");
    assert!(matches!(t.item("msg_x2").await, Err(Error::NotFound)));
    // And a conversation outlives its responses.
    t.create_conversation(new("d", "x0")).await.unwrap();
    let lease = t.begin_turn("d", LEASE).await.unwrap();
    t.put(NewTurn { parent: Parent::Conversation(lease), ..turn("r3", "u3", "a3") }).await.unwrap();
    let input = t.input_items("r3", page(20, Order::OldestFirst, None)).await.unwrap();
    assert_eq!(names(&input.items), "x0 u3");
    t.delete_response("r3").await.unwrap();
    assert_eq!(names(&t.conversation_history("d").await.unwrap()), "x0 u3 a3");
}

pub(crate) async fn conversation_items_come_and_go(store: Store) {
    let t = tenant(&store, "conversation-items");
    let new =
        NewConversation { id: "c".into(), created_at: 1, metadata: Bytes::from_static(b"{}"), items: items("i0 i1") };
    t.create_conversation(new).await.unwrap();
    t.append_items("c", items("i2 i3 i4")).await.unwrap();
    assert_eq!(t.conversation_item("c", "msg_i2").await.unwrap(), item("i2"));
    let lease = t.begin_turn("c", LEASE).await.unwrap();
    t.put(NewTurn { parent: Parent::Conversation(lease), ..turn("r", "i5", "i6") }).await.unwrap();
    for gone in ["msg_i1", "msg_i2", "msg_i3"] {
        assert_eq!(t.delete_conversation_item("c", gone).await.unwrap().id, "c");
        assert!(matches!(t.delete_conversation_item("c", gone).await, Err(Error::NotFound)));
        assert!(matches!(t.conversation_item("c", gone).await, Err(Error::NotFound)));
        assert_eq!(t.item(gone).await.unwrap().id, gone, "the response has it still");
    }
    // The response from before keeps what it was given and what it said; who comes later does not see it.
    assert_eq!(history(&t, "r").await.unwrap(), "i0 i1 i2 i3 i4 i5 i6");
    t.put(after("r", turn("side", "s1", "s2"))).await.unwrap();
    assert_eq!(history(&t, "side").await.unwrap(), "i0 i1 i2 i3 i4 i5 i6 s1 s2");
    assert_eq!(names(&t.conversation_history("c").await.unwrap()), "i0 i4 i5 i6");
    for (order, expected) in
        [(Order::OldestFirst, ["i0", "i4", "i5", "i6"]), (Order::NewestFirst, ["i6", "i5", "i4", "i0"])]
    {
        let mut cursor = None;
        for (n, name) in expected.iter().enumerate() {
            let got = t.conversation_items("c", page(1, order, cursor.as_deref())).await.unwrap();
            assert_eq!((names(&got.items).as_str(), got.has_more), (*name, n < 3));
            cursor = got.items.last().map(|item| item.id.clone());
        }
    }
    let refused = t.conversation_items("c", page(1, Order::OldestFirst, Some("nothing"))).await;
    assert!(matches!(refused, Err(Error::NoSuchCursor)));
    // Later turns do not see it, nor does what continues them; they know their places.
    let lease = t.begin_turn("c", LEASE).await.unwrap();
    t.put(NewTurn { parent: Parent::Conversation(lease), ..turn("r2", "i7", "i8") }).await.unwrap();
    t.put(after("r2", turn("late", "l1", "l2"))).await.unwrap();
    assert_eq!(history(&t, "late").await.unwrap(), "i0 i4 i5 i6 i7 i8 l1 l2");
    let whole = t.history("r2", DEEP).await.unwrap();
    assert_eq!((names(&whole.items).as_str(), whole.turns[0].output.clone()), ("i0 i4 i5 i6 i7 i8", 5..6));
    assert_eq!(names(&t.input_items("r2", page(20, Order::OldestFirst, None)).await.unwrap().items), "i0 i4 i5 i6 i7");
    assert_eq!(names(&t.response("r2").await.unwrap().output), "i8");
    // A response keeps what it said, also when that is taken out; with the last that has it, it is gone.
    t.delete_conversation_item("c", "msg_i6").await.unwrap();
    assert_eq!(names(&t.response("r").await.unwrap().output), "i6");
    t.delete_response("r").await.unwrap();
    assert_eq!(t.item("msg_i1").await.unwrap().id, "msg_i1", "what continues it has it");
    t.delete_response("side").await.unwrap();
    for gone in ["msg_i1", "msg_i2", "msg_i3"] {
        assert!(matches!(t.item(gone).await, Err(Error::NotFound)), "{gone}");
    }
    assert_eq!(names(&t.conversation_history("c").await.unwrap()), "i0 i4 i5 i7 i8");
}

pub(crate) async fn one_turn_at_a_time_in_a_conversation(store: Store) {
    let t = tenant(&store, "leases");
    let new = NewConversation { id: "c".into(), created_at: 1, metadata: Bytes::from_static(b"{}"), items: vec![] };
    t.create_conversation(new).await.unwrap();
    let lease = t.begin_turn("c", LEASE).await.unwrap();
    assert!(matches!(t.begin_turn("c", LEASE).await, Err(Error::Locked)));
    assert!(matches!(t.append_items("c", items("x")).await, Err(Error::Locked)));
    t.extend_turn(&lease, LEASE).await.unwrap();
    t.end_turn(&lease).await.unwrap();
    assert!(matches!(t.extend_turn(&lease, LEASE).await, Err(Error::Locked)));
    // A lease that ran out is taken over, and its old holder is refused.
    let slow = t.begin_turn("c", Duration::ZERO).await.unwrap();
    let quick = t.begin_turn("c", Duration::ZERO).await.unwrap();
    let late = NewTurn { parent: Parent::Conversation(slow.clone()), ..turn("slow", "u", "a") };
    assert!(matches!(t.put(late).await, Err(Error::Locked)));
    t.end_turn(&slow).await.unwrap();
    // One that ran out with nobody else there is still good.
    t.put(NewTurn { parent: Parent::Conversation(quick.clone()), ..turn("quick", "v", "b") }).await.unwrap();
    assert_eq!(names(&t.conversation_history("c").await.unwrap()), "v b");
    let twice = NewTurn { parent: Parent::Conversation(quick), ..turn("twice", "v", "b") };
    assert!(matches!(t.put(twice).await, Err(Error::Locked)), "a lease is for one turn");
    // Of many at once, one gets it.
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let t = t.clone();
        tasks.spawn(async move { t.begin_turn("c", LEASE).await });
    }
    let outcomes = tasks.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(_) | Err(Error::Locked))));
    t.delete_conversation("c").await.unwrap();
    let lease = outcomes.into_iter().find_map(Result::ok).unwrap();
    let orphan = NewTurn { parent: Parent::Conversation(lease), ..turn("orphan", "u", "a") };
    assert!(matches!(t.put(orphan).await, Err(Error::NotFound)));
}

//! What every backend promises.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use store::{
    ChainLimits, Error, Item, NewConversation, NewTurn, Order, Page, Room, Status, Store, StoredResponse, Turn,
};
use tokio::task::JoinSet;

use crate::make::{DEEP, after, history, item, items, names, page, tenant, turn};

const LEASE: Duration = Duration::from_mins(1);

pub(crate) async fn bytes_come_back_as_they_were(store: Store) {
    let t = tenant(&store, "bytes");
    // Escapes of NUL and lone surrogates, odd spacing, numbers that lose digits when read, raw NUL, invalid UTF-8.
    let bodies: [&[u8]; 6] = [
        br#"{"a":"\u0000","b":"\ud800"}"#,
        b"{ \"x\" :\t1.00000000000000000000001 }",
        b"\"\0\"",
        b"\xff\xfe{",
        "{\"t\":\"żółć 🦀\"}".as_bytes(),
        &br#"{"long":"abc "}"#.repeat(5000),
    ];
    let list: Vec<Item> =
        (0..).zip(bodies).map(|(n, body)| Item { id: format!("i{n}"), body: Bytes::copy_from_slice(body) }).collect();
    let put = NewTurn {
        input: list.clone(),
        output: list.clone(),
        head: Bytes::from_static(b"{\"\0\": \"\\ud800\"}"),
        status: Status::Incomplete,
        created_at: 12_345,
        expires_at: Some(i64::MAX),
        ..turn("r", "", "")
    };
    t.put(put.clone()).await.unwrap();
    let expected = StoredResponse {
        id: "r".into(),
        previous_response_id: None,
        conversation_id: None,
        status: Status::Incomplete,
        created_at: 12_345,
        expires_at: Some(i64::MAX),
        head: put.head,
        settings: None,
        output: list.clone(),
    };
    assert_eq!(t.response("r").await.unwrap(), expected);
    let whole = t.history("r", DEEP).await.unwrap();
    assert_eq!(whole.items, [list.clone(), list].concat());
    let only = Turn { id: "r".into(), status: Status::Incomplete, input: 0..6, output: 6..12, settings: None };
    assert_eq!(whole.turns, [only]);
}

pub(crate) async fn a_chain_is_given_out_oldest_first(store: Store) {
    let t = tenant(&store, "chain");
    t.put(turn("r1", "u1", "a1 b1")).await.unwrap();
    t.put(after("r1", NewTurn { status: Status::Incomplete, ..turn("r2", "u2", "a2") })).await.unwrap();
    t.put(after("r2", turn("r3", "u3", "a3"))).await.unwrap();
    let whole = t.history("r3", DEEP).await.unwrap();
    assert_eq!(names(&whole.items), "u1 a1 b1 u2 a2 u3 a3");
    let places: Vec<_> =
        whole.turns.iter().map(|t| (t.id.as_str(), t.status, t.input.clone(), t.output.clone())).collect();
    let expected = [
        ("r1", Status::Completed, 0..1, 1..3),
        ("r2", Status::Incomplete, 3..4, 4..5),
        ("r3", Status::Completed, 5..6, 6..7),
    ];
    assert_eq!(places, expected);
    assert_eq!(t.response("r3").await.unwrap().previous_response_id.as_deref(), Some("r2"));
    assert_eq!(names(&t.response("r2").await.unwrap().output), "a2");
}

pub(crate) async fn forks_see_exactly_their_ancestors(store: Store) {
    let t = tenant(&store, "forks");
    t.put(turn("a", "u1", "a1")).await.unwrap();
    t.put(after("a", turn("b", "u2", "b2"))).await.unwrap();
    t.put(after("a", turn("c", "u3", "c3"))).await.unwrap();
    t.put(after("b", turn("d", "u4", "d4"))).await.unwrap();
    t.put(after("c", turn("e", "u5", "e5"))).await.unwrap();
    t.put(after("a", turn("f", "u2", "f6"))).await.unwrap();
    for (id, expected) in [
        ("a", "u1 a1"),
        ("b", "u1 a1 u2 b2"),
        ("c", "u1 a1 u3 c3"),
        ("d", "u1 a1 u2 b2 u4 d4"),
        ("e", "u1 a1 u3 c3 u5 e5"),
        ("f", "u1 a1 u2 f6"),
    ] {
        assert_eq!(history(&t, id).await.unwrap(), expected, "{id}");
    }
}

pub(crate) async fn unknown_ids_are_not_found(store: Store) {
    let t = tenant(&store, "unknown");
    assert!(matches!(history(&t, "x").await, Err(Error::NotFound)));
    assert!(matches!(t.response("x").await, Err(Error::NotFound)));
    assert!(matches!(t.delete_response("x").await, Err(Error::NotFound)));
    assert!(matches!(t.input_items("x", page(20, Order::NewestFirst, None)).await, Err(Error::NotFound)));
    assert!(matches!(t.item("x").await, Err(Error::NotFound)));
    assert!(matches!(t.conversation("x").await, Err(Error::NotFound)));
    assert!(matches!(t.update_conversation("x", Bytes::from_static(b"{}")).await, Err(Error::NotFound)));
    assert!(matches!(t.delete_conversation("x").await, Err(Error::NotFound)));
    assert!(matches!(t.append_items("x", items("a")).await, Err(Error::NotFound)));
    assert!(matches!(t.conversation_items("x", page(20, Order::NewestFirst, None)).await, Err(Error::NotFound)));
    assert!(matches!(t.conversation_history("x").await, Err(Error::NotFound)));
    assert!(matches!(t.conversation_item("x", "y").await, Err(Error::NotFound)));
    assert!(matches!(t.delete_conversation_item("x", "y").await, Err(Error::NotFound)));
    assert!(matches!(t.begin_turn("x", LEASE).await, Err(Error::NotFound)));
    assert!(matches!(t.put(after("x", turn("r", "u", "a"))).await, Err(Error::NotFound)));
    assert!(matches!(t.response("r").await, Err(Error::NotFound)), "a refused turn leaves nothing");
}

pub(crate) async fn an_id_is_taken_once(store: Store) {
    let t = tenant(&store, "taken");
    t.put(turn("r", "u", "a")).await.unwrap();
    assert!(matches!(t.put(turn("r", "v", "b")).await, Err(Error::Conflict)));
    assert_eq!(history(&t, "r").await.unwrap(), "u a");
    t.delete_response("r").await.unwrap();
    assert!(matches!(t.put(turn("r", "v", "b")).await, Err(Error::Conflict)), "a late writer brings nothing back");
    assert!(matches!(t.response("r").await, Err(Error::NotFound)));
}

pub(crate) async fn too_deep_is_refused(store: Store) {
    let t = tenant(&store, "deep");
    t.put(turn("r1", "u1", "a1")).await.unwrap();
    t.put(after("r1", turn("r2", "u2", "a2"))).await.unwrap();
    t.put(after("r2", turn("r3", "u3", "a3"))).await.unwrap();
    let limit = |max_depth| ChainLimits { max_depth, settings: false };
    assert!(t.history("r3", limit(3)).await.is_ok());
    assert!(matches!(t.history("r3", limit(2)).await, Err(Error::TooDeep { limit: 2 })));
}

pub(crate) async fn a_deleted_ancestor_breaks_the_chain(store: Store) {
    let t = tenant(&store, "deleted");
    t.put(turn("r1", "u1", "a1")).await.unwrap();
    t.put(after("r1", turn("r2", "u2", "a2"))).await.unwrap();
    t.put(after("r2", turn("r3", "u3", "a3"))).await.unwrap();
    t.put(after("r1", turn("s2", "v2", "b2"))).await.unwrap();
    t.delete_response("r2").await.unwrap();
    assert!(matches!(t.response("r2").await, Err(Error::NotFound)));
    assert!(matches!(t.delete_response("r2").await, Err(Error::NotFound)));
    assert!(matches!(history(&t, "r2").await, Err(Error::NotFound)));
    assert!(matches!(history(&t, "r3").await, Err(Error::DeletedAncestor)));
    assert!(matches!(t.put(after("r2", turn("r4", "u4", "a4"))).await, Err(Error::NotFound)));
    assert!(matches!(t.item("msg_u2").await, Err(Error::NotFound)), "the content is erased");
    assert!(matches!(t.item("msg_a2").await, Err(Error::NotFound)));
    assert_eq!(names(&t.response("r3").await.unwrap().output), "a3", "what is its own, a child keeps");
    assert_eq!(history(&t, "s2").await.unwrap(), "u1 a1 v2 b2", "the other branch is whole");
    // Nothing is built upon a list with a hole, even by a client that sends that very list.
    t.put(turn("n", "u1 a1 u2 a2 u3", "n")).await.unwrap();
    assert_eq!(history(&t, "n").await.unwrap(), "u1 a1 u2 a2 u3 n");
    let newest = t.input_items("r3", page(1, Order::NewestFirst, None)).await.unwrap();
    assert_eq!((names(&newest.items).as_str(), newest.has_more), ("u3", true));
    assert!(matches!(t.input_items("r3", page(9, Order::NewestFirst, None)).await, Err(Error::DeletedAncestor)));
}

pub(crate) async fn what_another_response_was_sent_survives_a_deletion(store: Store) {
    let t = tenant(&store, "survives");
    t.put(turn("r1", "u1", "a1")).await.unwrap();
    t.put(turn("r2", "u1 a1 u2", "a2")).await.unwrap();
    t.put(turn("r3", "u1 x1 u2", "a3")).await.unwrap();
    t.put(after("r3", turn("r4", "u4", "a4"))).await.unwrap();
    t.delete_response("r1").await.unwrap();
    assert_eq!(history(&t, "r2").await.unwrap(), "u1 a1 u2 a2");
    assert_eq!(history(&t, "r3").await.unwrap(), "u1 x1 u2 a3");
    t.delete_response("r2").await.unwrap();
    assert!(matches!(t.item("msg_a1").await, Err(Error::NotFound)));
    assert_eq!(history(&t, "r4").await.unwrap(), "u1 x1 u2 a3 u4 a4");
    t.delete_response("r3").await.unwrap();
    assert!(matches!(history(&t, "r4").await, Err(Error::DeletedAncestor)));
    t.delete_response("r4").await.unwrap();
    for gone in ["u1", "x1", "u2", "a3", "u4", "a4"] {
        assert!(matches!(t.item(&format!("msg_{gone}")).await, Err(Error::NotFound)), "{gone}");
    }
}

pub(crate) async fn resending_everything_adds_only_what_is_new(store: Store) {
    let t = tenant(&store, "resend");
    let mut list = String::new();
    for n in 0..30 {
        list = format!("{list} u{n}");
        t.put(turn(&format!("r{n}"), &list, &format!("a{n}"))).await.unwrap();
        list = format!("{list} a{n}");
    }
    // An item that is held keeps the id under which it was first stored: that is how one sees that it was shared.
    let again = items(&list).into_iter().map(|item| Item { id: format!("other_{}", item.id), ..item }).collect();
    t.put(NewTurn { input: again, ..turn("again", "", "new") }).await.unwrap();
    assert_eq!(history(&t, "again").await.unwrap(), format!("{} new", list.trim()));
    for n in 0..30 {
        let upto = list.split(' ').take(2 * n + 3).collect::<Vec<_>>().join(" ");
        assert_eq!(history(&t, &format!("r{n}")).await.unwrap(), upto.trim(), "{n}");
    }
    let whole = t.history("again", DEEP).await.unwrap();
    assert_eq!((whole.turns.len(), whole.turns[0].input.clone()), (1, 0..60));
}

pub(crate) async fn an_item_spelled_anew_is_the_same_item(store: Store) {
    let t = tenant(&store, "spelling");
    let ours =
        Bytes::from_static(br#"{"id":"msg_a1","type":"message","status":"completed","content":[],"x":"\u00fc"}"#);
    let theirs = Bytes::from("{\"x\": \"ü\", \"type\": \"message\", \"id\": \"msg_a1\"}");
    let answer = Item { id: "msg_a1".to_owned(), body: ours.clone() };
    t.put(NewTurn { output: vec![answer.clone()], ..turn("r1", "u1", "") }).await.unwrap();
    let echo = Item { body: theirs, ..answer.clone() };
    let input = vec![item("u1"), echo, item("u2")];
    t.put(NewTurn { input, ..turn("r2", "", "a2") }).await.unwrap();
    let whole = t.history("r2", DEEP).await.unwrap();
    assert_eq!((names(&whole.items), &whole.items[1]), ("u1 a1 u2 a2".to_owned(), &answer));
    // Another id is another item, whatever else is the same.
    let other = Bytes::from(String::from_utf8_lossy(&ours).replace("msg_a1", "msg_b1"));
    let input = vec![item("u1"), Item { id: "msg_b1".to_owned(), body: other.clone() }];
    t.put(NewTurn { input, ..turn("r3", "", "a3") }).await.unwrap();
    assert_eq!(t.history("r3", DEEP).await.unwrap().items[1].body, other);
}

pub(crate) async fn settings_are_kept_once_and_given_back(store: Store) {
    let t = tenant(&store, "settings");
    let set =
        |text: &'static str, turn: NewTurn| NewTurn { settings: Some(Bytes::from_static(text.as_bytes())), ..turn };
    t.put(set("one", turn("r1", "u1", "a1"))).await.unwrap();
    t.put(after("r1", set("two", turn("r2", "u2", "a2")))).await.unwrap();
    t.put(after("r2", turn("r3", "u3", "a3"))).await.unwrap();
    t.put(after("r3", set("one", turn("r4", "u4", "a4")))).await.unwrap();
    assert_eq!(t.response("r2").await.unwrap().settings.as_deref(), Some(&b"two"[..]));
    assert_eq!(t.response("r3").await.unwrap().settings, None);
    let whole = t.history("r4", ChainLimits { settings: true, ..DEEP }).await.unwrap();
    let settings: Vec<_> = whole.turns.iter().map(|turn| turn.settings.as_deref()).collect();
    assert_eq!(settings, [Some(&b"one"[..]), Some(b"two"), None, Some(b"one")]);
    t.delete_response("r1").await.unwrap();
    assert_eq!(t.response("r4").await.unwrap().settings.as_deref(), Some(&b"one"[..]));
}

pub(crate) async fn input_items_are_paged_both_ways(store: Store) {
    let t = tenant(&store, "pages");
    t.put(turn("r1", "i0 i1", "i2")).await.unwrap();
    t.put(after("r1", turn("r2", "i3", "i4"))).await.unwrap();
    t.put(after("r1", turn("r3", "i3 j4 j5", "j6"))).await.unwrap();
    let all = "i0 i1 i2 i3 j4 j5";
    for limit in 1..8 {
        for order in [Order::OldestFirst, Order::NewestFirst] {
            let (mut seen, mut cursor) = (Vec::new(), None);
            loop {
                let got = t.input_items("r3", page(limit, order, cursor.as_deref())).await.unwrap();
                assert!(got.items.len() <= limit as usize);
                cursor = got.items.last().map(|item| item.id.clone());
                seen.extend(got.items);
                if !got.has_more {
                    break;
                }
            }
            if order == Order::NewestFirst {
                seen.reverse();
            }
            assert_eq!(names(&seen), all, "{limit} {order:?}");
        }
    }
    let past = t.input_items("r3", page(5, Order::OldestFirst, Some("msg_j5"))).await.unwrap();
    assert!(past.items.is_empty() && !past.has_more);
    // Its own output, and another branch's, are not of this list.
    for foreign in ["msg_j6", "msg_i4", "nothing"] {
        let refused = t.input_items("r3", page(5, Order::OldestFirst, Some(foreign))).await;
        assert!(matches!(refused, Err(Error::NoSuchCursor)), "{foreign}");
    }
}

pub(crate) async fn items_are_found_by_their_id(store: Store) {
    let t = tenant(&store, "items");
    t.put(turn("r1", "u1", "a1")).await.unwrap();
    assert_eq!(t.item("msg_a1").await.unwrap(), item("a1"));
    let echo = Item { body: Bytes::from_static(b"{\"echoed\":true}"), ..item("a1") };
    t.put(NewTurn { input: vec![item("u1"), echo.clone()], ..turn("r2", "", "a2") }).await.unwrap();
    t.delete_response("r1").await.unwrap();
    assert_eq!(t.item("msg_a1").await.unwrap(), echo);
}

pub(crate) async fn tenants_never_meet(store: Store) {
    let (one, two) = (tenant(&store, "one"), tenant(&store, "two"));
    one.put(turn("r1", "u1", "secret")).await.unwrap();
    let conversation =
        NewConversation { id: "c".into(), created_at: 1, metadata: Bytes::from_static(b"{}"), items: items("hidden") };
    one.create_conversation(conversation.clone()).await.unwrap();
    assert!(matches!(two.response("r1").await, Err(Error::NotFound)));
    assert!(matches!(history(&two, "r1").await, Err(Error::NotFound)));
    assert!(matches!(two.delete_response("r1").await, Err(Error::NotFound)));
    assert!(matches!(two.item("msg_secret").await, Err(Error::NotFound)));
    assert!(matches!(two.conversation("c").await, Err(Error::NotFound)));
    assert!(matches!(two.conversation_item("c", "msg_hidden").await, Err(Error::NotFound)));
    assert!(matches!(two.begin_turn("c", LEASE).await, Err(Error::NotFound)));
    assert!(matches!(two.put(after("r1", turn("r2", "u2", "a2"))).await, Err(Error::NotFound)));
    // The same ids and the same bytes under another tenant are another thing.
    two.put(turn("r1", "u1", "other")).await.unwrap();
    two.create_conversation(NewConversation { items: items("seen"), ..conversation }).await.unwrap();
    one.delete_response("r1").await.unwrap();
    one.delete_conversation("c").await.unwrap();
    assert_eq!(history(&two, "r1").await.unwrap(), "u1 other");
    assert_eq!(names(&two.conversation_history("c").await.unwrap()), "seen");
}

pub(crate) async fn a_swept_ancestor_leaves_its_children_whole(store: Store) {
    let t = tenant(&store, "swept");
    let expiring = |at, turn: NewTurn| NewTurn { expires_at: Some(at), ..turn };
    t.put(expiring(1_000, turn("r1", "u1", "a1"))).await.unwrap();
    t.put(expiring(2_000, after("r1", turn("r2", "u2", "a2")))).await.unwrap();
    t.put(expiring(1_000, after("r2", turn("r3", "u3", "a3")))).await.unwrap();
    assert_eq!(store.sweep(999, 100).await.unwrap(), 0);
    assert_eq!(store.sweep(1_000, 1).await.unwrap(), 1);
    assert_eq!(store.sweep(1_500, 100).await.unwrap(), 1);
    assert_eq!(store.sweep(1_500, 100).await.unwrap(), 0);
    assert!(matches!(t.response("r1").await, Err(Error::NotFound)));
    assert!(matches!(t.response("r3").await, Err(Error::NotFound)));
    assert!(matches!(t.item("msg_a3").await, Err(Error::NotFound)), "what nobody needs goes at once");
    assert_eq!(history(&t, "r2").await.unwrap(), "u1 a1 u2 a2");
    assert_eq!(t.history("r2", DEEP).await.unwrap().turns.len(), 2);
    t.put(after("r2", turn("r4", "u4", "a4"))).await.unwrap();
    assert_eq!(history(&t, "r4").await.unwrap(), "u1 a1 u2 a2 u4 a4");
    assert_eq!(store.sweep(2_000, 100).await.unwrap(), 1);
    assert_eq!(history(&t, "r4").await.unwrap(), "u1 a1 u2 a2 u4 a4");
    t.delete_response("r4").await.unwrap();
    for gone in ["u1", "a1", "u2", "a2", "u4", "a4"] {
        assert!(matches!(t.item(&format!("msg_{gone}")).await, Err(Error::NotFound)), "{gone}");
    }
}

pub(crate) async fn what_an_expired_ancestor_had_survives_the_deletion_of_one_that_resent_it(store: Store) {
    let t = tenant(&store, "expired and resent");
    t.put(NewTurn { expires_at: Some(1_000), ..turn("r1", "u1", "a1") }).await.unwrap();
    t.put(after("r1", turn("r2", "u2", "a2"))).await.unwrap();
    t.put(turn("resent", "u1 a1 u2 a2 u3", "a3")).await.unwrap();
    while store.sweep(1_000, 100).await.unwrap() > 0 {}
    t.delete_response("resent").await.unwrap();
    assert_eq!(history(&t, "r2").await.unwrap(), "u1 a1 u2 a2");
    // Nobody continues it any more: then its items go with the last one that was sent them.
    t.put(turn("again", "u1 a1", "b")).await.unwrap();
    t.delete_response("r2").await.unwrap();
    t.delete_response("again").await.unwrap();
    for gone in ["u1", "a1", "u2", "a2", "u3", "a3", "b"] {
        assert!(matches!(t.item(&format!("msg_{gone}")).await, Err(Error::NotFound)), "{gone}");
    }
}

pub(crate) async fn concurrent_continuations_fork(store: Store) {
    let t = tenant(&store, "concurrent");
    t.put(turn("p", "u", "a")).await.unwrap();
    let mut tasks = JoinSet::new();
    for n in 0..24 {
        let t = t.clone();
        tasks.spawn(async move {
            t.put(after("p", turn(&format!("r{n}"), &format!("u{n}"), &format!("a{n}")))).await.unwrap();
            assert_eq!(history(&t, &format!("r{n}")).await.unwrap(), format!("u a u{n} a{n}"), "read your writes");
        });
    }
    tasks.join_all().await;
    for n in 0..24 {
        assert_eq!(history(&t, &format!("r{n}")).await.unwrap(), format!("u a u{n} a{n}"));
    }
}

pub(crate) async fn odd_ids_are_only_odd(store: Store) {
    let t = tenant(&store, "odd");
    let long = "x".repeat(3_000);
    let odd = ["", "\0", "a\0b", "'; DROP TABLE response; --", "%", "ż🦀", long.as_str()];
    for id in odd {
        assert!(matches!(t.response(id).await, Err(Error::NotFound)), "{id:?}");
        assert!(matches!(t.item(id).await, Err(Error::NotFound)), "{id:?}");
        assert!(matches!(t.conversation(id).await, Err(Error::NotFound)), "{id:?}");
    }
    t.put(turn("a\0b", "u", "a")).await.unwrap();
    assert_eq!(history(&t, "a\0b").await.unwrap(), "u a");
    assert!(matches!(t.response("a").await, Err(Error::NotFound)));
}

pub(crate) async fn a_turn_without_items_is_a_turn(store: Store) {
    let t = tenant(&store, "empty");
    t.put(turn("r1", "", "")).await.unwrap();
    t.put(after("r1", turn("r2", "", ""))).await.unwrap();
    t.put(after("r2", turn("r3", "u3", "a3"))).await.unwrap();
    t.put(after("r2", turn("s3", "v3", "b3"))).await.unwrap();
    t.put(after("r3", turn("r4", "", ""))).await.unwrap();
    t.put(turn("t", "u3 a3", "")).await.unwrap();
    assert_eq!(history(&t, "r2").await.unwrap(), "");
    assert_eq!(history(&t, "r4").await.unwrap(), "u3 a3");
    assert_eq!(history(&t, "s3").await.unwrap(), "v3 b3");
    assert_eq!(history(&t, "t").await.unwrap(), "u3 a3");
    assert_eq!(t.history("r4", DEEP).await.unwrap().turns.len(), 4);
    t.delete_response("r1").await.unwrap();
    assert!(matches!(history(&t, "r4").await, Err(Error::DeletedAncestor)));
}

/// Room for so many bytes.
#[derive(Debug)]
struct Shelf(AtomicUsize);

impl Room for Shelf {
    fn take(&self, bytes: usize) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Every read of bodies takes room for exactly those, as long as they are when they are whole, and ends without.
pub(crate) async fn what_is_read_needs_room(store: Store) {
    let t = tenant(&store, "room");
    let large = |n: usize| Item { id: format!("msg_l{n}"), body: Bytes::from(vec![b'a'; 100_000]) };
    let settings = Some(Bytes::from(vec![b's'; 1_000]));
    let input = vec![large(0), large(1)];
    let head = Bytes::from(vec![b'h'; 10]);
    t.put(NewTurn { input: input.clone(), output: vec![large(2)], settings, head, ..turn("r", "", "") }).await.unwrap();
    let new =
        NewConversation { id: "c".into(), created_at: 1, metadata: Bytes::from_static(b"{}"), items: input.clone() };
    t.create_conversation(new).await.unwrap();
    let whole = page(20, Order::NewestFirst, None);
    let reads: [(&str, usize); 8] = [
        ("history", 300_000),
        ("history with settings", 301_000),
        ("response", 101_010),
        ("input_items", 200_000),
        ("items", 200_000),
        ("conversation_items", 200_000),
        ("conversation_history", 200_000),
        ("conversation_item", 100_000),
    ];
    for (name, bytes) in reads {
        for (room, enough) in [(bytes, true), (bytes - 1, false), (0, false)] {
            let shelf = Arc::new(Shelf(AtomicUsize::new(room)));
            let t = t.within(Arc::<Shelf>::clone(&shelf));
            let read = match name {
                "history" => t.history("r", DEEP).await.map(drop),
                "history with settings" => t.history("r", ChainLimits { settings: true, ..DEEP }).await.map(drop),
                "response" => t.response("r").await.map(drop),
                "input_items" => t.input_items("r", whole.clone()).await.map(drop),
                "items" => t.items(vec!["msg_l0".into(), "none".into(), "msg_l1".into()]).await.map(drop),
                "conversation_items" => t.conversation_items("c", whole.clone()).await.map(drop),
                "conversation_history" => t.conversation_history("c").await.map(drop),
                _ => t.conversation_item("c", "msg_l1").await.map(drop),
            };
            match read {
                Ok(()) => assert!(enough && shelf.0.load(Ordering::Relaxed) == 0, "{name} {room} {shelf:?}"),
                Err(error) => assert!(!enough && matches!(error, Error::NoRoom), "{name} {room} {error}"),
            }
        }
    }
    // The store is as it was.
    assert_eq!(t.conversation_history("c").await.unwrap(), input);
}

/// A page that would be too large ends early and says so; what is too large alone is a page of its own.
pub(crate) async fn a_page_ends_with_its_bytes(store: Store) {
    let t = tenant(&store, "page bytes");
    let sizes = [10, 20, 30, 500, 10, 10, 10, 99, 1, 100, 101, 5];
    let items = (0..).zip(sizes).map(|(n, size): (usize, usize)| {
        let body = Bytes::from(vec![b'a'; size]);
        Item { id: format!("msg_{n}"), body }
    });
    let items: Vec<Item> = items.collect();
    t.put(NewTurn { input: items.clone(), ..turn("r", "", "") }).await.unwrap();
    let new =
        NewConversation { id: "c".into(), created_at: 1, metadata: Bytes::from_static(b"{}"), items: items.clone() };
    t.create_conversation(new).await.unwrap();
    for (order, limit) in
        [Order::OldestFirst, Order::NewestFirst].into_iter().flat_map(|order| [(order, 3), (order, 20)])
    {
        for of_conversation in [false, true] {
            let (mut seen, mut cursor) = (Vec::new(), None);
            loop {
                let page = Page { max_bytes: 100, ..page(limit, order, cursor.as_deref()) };
                let shelf = Arc::new(Shelf(AtomicUsize::new(700)));
                let t = t.within(Arc::<Shelf>::clone(&shelf));
                let got = if of_conversation {
                    t.conversation_items("c", page).await
                } else {
                    t.input_items("r", page).await
                };
                let got = got.unwrap();
                let bytes: usize = got.items.iter().map(|item| item.body.len()).sum();
                assert!(bytes <= 100 || got.items.len() == 1, "{order:?} {limit} {bytes}");
                // No more is kept than what is shown, and one that told of more.
                assert!(700 - shelf.0.load(Ordering::Relaxed) <= bytes.max(100), "{order:?} {limit} {shelf:?}");
                cursor = got.items.last().map(|item| item.id.clone());
                seen.extend(got.items);
                if !got.has_more {
                    break;
                }
            }
            if order == Order::NewestFirst {
                seen.reverse();
            }
            assert_eq!(seen, items, "{order:?} {limit}");
        }
    }
}

/// Others read between the parts of a long lookup: where the queue is ours, and on one thread, so that only its order
/// decides.
pub(crate) async fn a_long_lookup_lets_others_in(store: Store) {
    let t = tenant(&store, "long lookup");
    t.put(turn("r", "u", "a")).await.unwrap();
    let ended = Arc::new(AtomicUsize::new(0));
    let mut lookups = JoinSet::new();
    for _ in 0..8 {
        let (t, ended) = (t.clone(), Arc::clone(&ended));
        lookups.spawn(async move {
            let ids: Vec<String> = (0..16_000).map(|n| format!("msg_{n}")).chain(["msg_u".to_owned()]).collect();
            let mut found = t.items(ids).await.unwrap();
            assert!(found.pop().flatten().is_some() && found.iter().all(Option::is_none));
            ended.fetch_add(1, Ordering::Relaxed);
        });
    }
    // They have begun.
    tokio::task::yield_now().await;
    t.response("r").await.unwrap();
    // A machine that is busy elsewhere may wake this test late; a read that waited for all would find none of them left.
    assert!(ended.load(Ordering::Relaxed) < 6, "a read waited for whole lookups");
    lookups.join_all().await;
}

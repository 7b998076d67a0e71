//! What every backend promises of turns that are begun, advanced and finished, and of their event logs.

use std::time::Duration;

use bytes::Bytes;
use store::{
    Error, EventLimits, EventPage, Lease, NewConversation, NewEvents, NewTurn, Order, Parent, Status, Store, Tenanted,
    TurnEnd,
};
use tokio::task::JoinSet;

use crate::make::{DEEP, after, history, items, names, page, tenant, turn};

const LEASE: Duration = Duration::from_mins(1);
const ALL: EventLimits = EventLimits { events: 1_000, bytes: usize::MAX };

pub(crate) fn begun(id: &str, input: &str) -> NewTurn {
    NewTurn { status: Status::Queued, events: Some(events(0, &[])), ..turn(id, input, "") }
}

pub(crate) fn ended(id: &str, output: &str) -> TurnEnd {
    TurnEnd {
        id: id.to_owned(),
        status: Status::Completed,
        head: Bytes::from(format!(r#"{{"id":"{id}","ended":true}}"#)),
        settings: None,
        output: items(output),
        lease: None,
        events: None,
        claim: None,
        notices: Vec::new(),
    }
}

pub(crate) fn events(first: u64, texts: &[&str]) -> NewEvents {
    NewEvents { first, events: texts.iter().map(|text| Bytes::copy_from_slice(text.as_bytes())).collect() }
}

/// The events as `number:text`, and whether there is more.
fn shown(page: &EventPage) -> (String, bool) {
    let text = |event: &store::Event| format!("{}:{}", event.sequence, String::from_utf8_lossy(&event.json));
    (page.events.iter().map(text).collect::<Vec<_>>().join(" "), page.has_more)
}

async fn log(t: &Tenanted, id: &str) -> String {
    shown(&t.events_after(id, None, ALL).await.unwrap()).0
}

async fn input(t: &Tenanted, id: &str) -> String {
    names(&t.input_items(id, page(50, Order::OldestFirst, None)).await.unwrap().items)
}

pub(crate) async fn a_turn_is_begun_advanced_and_finished(store: Store) {
    let t = tenant(&store, "begun");
    t.put(turn("r1", "u1", "a1")).await.unwrap();
    let settings = |text: &'static str| Some(Bytes::from_static(text.as_bytes()));
    let begin = after("r1", NewTurn { settings: settings("first"), ..begun("r2", "u2 v2") });
    t.begin(begin.clone()).await.unwrap();
    assert!(matches!(t.begin(begin).await, Err(Error::Conflict)));
    assert!(matches!(t.put(turn("r2", "x", "y")).await, Err(Error::Conflict)));
    let stored = t.response("r2").await.unwrap();
    assert_eq!((stored.status, stored.output.len()), (Status::Queued, 0));
    assert_eq!((stored.settings, stored.previous_response_id), (settings("first"), Some("r1".to_owned())));
    assert_eq!(input(&t, "r2").await, "u1 a1 u2 v2");
    // What the one that runs it needs: everything up to and including its input.
    let whole = t.history("r2", DEEP).await.unwrap();
    assert_eq!(names(&whole.items), "u1 a1 u2 v2");
    assert_eq!((whole.turns[1].status, whole.turns[1].input.clone()), (Status::Queued, 2..4));
    t.advance("r2", Status::InProgress).await.unwrap();
    t.advance("r2", Status::InProgress).await.unwrap();
    assert_eq!(t.response("r2").await.unwrap().status, Status::InProgress);
    let end = TurnEnd { settings: settings("last"), ..ended("r2", "a2 b2") };
    t.finish(end.clone()).await.unwrap();
    let stored = t.response("r2").await.unwrap();
    assert_eq!((stored.status, stored.head, stored.settings), (Status::Completed, end.head, settings("last")));
    assert_eq!(names(&stored.output), "a2 b2");
    t.put(after("r2", turn("r3", "u3", "a3"))).await.unwrap();
    assert_eq!(history(&t, "r3").await.unwrap(), "u1 a1 u2 v2 a2 b2 u3 a3");
    assert_eq!(t.history("r3", DEEP).await.unwrap().turns.len(), 3);
    // One that sends it all again shares what was finished.
    t.put(turn("again", "u1 a1 u2 v2 a2 b2 u3 a3 w", "z")).await.unwrap();
    assert_eq!(history(&t, "again").await.unwrap(), "u1 a1 u2 v2 a2 b2 u3 a3 w z");
}

pub(crate) async fn a_turn_ends_once(store: Store) {
    let t = tenant(&store, "once");
    for status in [Status::Completed, Status::Incomplete, Status::Failed, Status::Cancelled] {
        let id = format!("r-{status}");
        t.begin(begun(&id, "u")).await.unwrap();
        t.finish(TurnEnd { status, ..ended(&id, "a") }).await.unwrap();
        for again in [Status::Completed, Status::Failed, Status::Cancelled] {
            let refused = t.finish(TurnEnd { status: again, ..ended(&id, "other") }).await;
            assert!(matches!(refused, Err(Error::Ended { status: found }) if found == status), "{refused:?}");
        }
        assert!(matches!(t.advance(&id, Status::InProgress).await, Err(Error::Ended { .. })));
        assert!(matches!(t.append_events(&id, &events(0, &["x"]), None).await, Err(Error::Ended { .. })));
        let stored = t.response(&id).await.unwrap();
        assert_eq!((stored.status, names(&stored.output).as_str()), (status, "a"));
    }
    // What was stored whole has ended, too.
    t.put(turn("whole", "u", "a")).await.unwrap();
    assert!(matches!(t.finish(ended("whole", "b")).await, Err(Error::Ended { .. })));
    // Of many at once, one ends it.
    t.begin(begun("race", "u")).await.unwrap();
    let mut tasks = JoinSet::new();
    for n in 0..12 {
        let t = t.clone();
        tasks.spawn(async move { (n, t.finish(ended("race", &format!("a{n}"))).await) });
    }
    let (won, lost): (Vec<_>, Vec<_>) = tasks.join_all().await.into_iter().partition(|(_, outcome)| outcome.is_ok());
    assert_eq!(won.len(), 1);
    assert!(lost.iter().all(|(_, outcome)| matches!(outcome, Err(Error::Ended { .. }))), "{lost:?}");
    assert_eq!(history(&t, "race").await.unwrap(), format!("u a{}", won[0].0));
}

pub(crate) async fn what_is_not_finished_is_not_continued(store: Store) {
    let t = tenant(&store, "unfinished");
    t.begin(begun("r", "u")).await.unwrap();
    for status in [Status::Queued, Status::InProgress] {
        t.advance("r", status).await.unwrap();
        assert!(matches!(t.put(after("r", turn("s", "v", "b"))).await, Err(Error::Running)));
        assert!(matches!(t.begin(after("r", begun("s", "v"))).await, Err(Error::Running)));
        assert!(matches!(t.response("s").await, Err(Error::NotFound)));
    }
    t.finish(ended("r", "a")).await.unwrap();
    t.put(after("r", turn("s", "v", "b"))).await.unwrap();
    assert_eq!(history(&t, "s").await.unwrap(), "u a v b");
}

/// While a turn runs, others continue the same place, or send the same input.
pub(crate) async fn a_begun_turn_keeps_its_place_beside_others(store: Store) {
    let t = tenant(&store, "beside");
    t.put(turn("p", "u", "a")).await.unwrap();
    t.begin(after("p", begun("r", "v"))).await.unwrap();
    t.begin(begun("alone", "x y")).await.unwrap();
    t.begin(after("p", begun("empty", ""))).await.unwrap();
    t.put(after("p", turn("s", "v", "b"))).await.unwrap();
    t.put(turn("same", "x y", "c")).await.unwrap();
    t.put(turn("resent", "u a v w", "d")).await.unwrap();
    t.finish(ended("r", "e f")).await.unwrap();
    t.finish(ended("alone", "g")).await.unwrap();
    t.finish(ended("empty", "")).await.unwrap();
    for (id, expected) in [
        ("r", "u a v e f"),
        ("alone", "x y g"),
        ("empty", "u a"),
        ("s", "u a v b"),
        ("same", "x y c"),
        ("resent", "u a v w d"),
    ] {
        assert_eq!(history(&t, id).await.unwrap(), expected, "{id}");
    }
    t.put(after("r", turn("r2", "h", "i"))).await.unwrap();
    assert_eq!(history(&t, "r2").await.unwrap(), "u a v e f h i");
    t.delete_response("r").await.unwrap();
    assert!(matches!(history(&t, "r2").await, Err(Error::DeletedAncestor)));
    for gone in ["e", "f"] {
        assert!(matches!(t.item(&format!("msg_{gone}")).await, Err(Error::NotFound)), "{gone}");
    }
    assert_eq!(history(&t, "s").await.unwrap(), "u a v b");
}

async fn conversation(t: &Tenanted, id: &str) -> Lease {
    let new =
        NewConversation { id: id.into(), created_at: 1, metadata: Bytes::from_static(b"{}"), items: items("c0 c1") };
    t.create_conversation(new).await.unwrap();
    t.begin_turn(id, LEASE).await.unwrap()
}

fn within(lease: &Lease, turn: NewTurn) -> NewTurn {
    NewTurn { parent: Parent::Conversation(lease.clone()), ..turn }
}

pub(crate) async fn a_begun_turn_in_a_conversation_joins_it_at_its_end(store: Store) {
    let t = tenant(&store, "joins");
    let lease = conversation(&t, "c").await;
    t.begin(within(&lease, begun("r", "u v"))).await.unwrap();
    assert!(matches!(t.begin_turn("c", LEASE).await, Err(Error::Locked)), "the lease goes on");
    assert_eq!(names(&t.conversation_history("c").await.unwrap()), "c0 c1", "nothing before its end");
    assert_eq!(input(&t, "r").await, "c0 c1 u v");
    assert_eq!(t.response("r").await.unwrap().conversation_id.as_deref(), Some("c"));
    // Somebody takes an item out meanwhile.
    t.delete_conversation_item("c", "msg_c1").await.unwrap();
    for lease in [None, Some(conversation(&t, "other").await)] {
        let refused = t.finish(TurnEnd { lease, ..ended("r", "a") }).await;
        assert!(matches!(refused, Err(Error::Locked)), "{refused:?}");
    }
    t.finish(TurnEnd { lease: Some(lease.clone()), ..ended("r", "a b") }).await.unwrap();
    assert_eq!(names(&t.conversation_history("c").await.unwrap()), "c0 u v a b");
    assert_eq!(history(&t, "r").await.unwrap(), "c0 u v a b");
    assert_eq!(input(&t, "r").await, "c0 u v");
    let next = t.begin_turn("c", LEASE).await.unwrap();
    t.put(within(&next, turn("next", "w", "d"))).await.unwrap();
    assert_eq!(names(&t.conversation_history("c").await.unwrap()), "c0 u v a b w d");
    t.delete_response("r").await.unwrap();
    assert_eq!(names(&t.conversation_history("c").await.unwrap()), "c0 u v a b w d", "they are the conversation's");
}

pub(crate) async fn a_turn_that_fails_leaves_its_conversation_as_it_was(store: Store) {
    let t = tenant(&store, "fails");
    for status in [Status::Failed, Status::Cancelled] {
        let (c, r) = (format!("c-{status}"), format!("r-{status}"));
        let lease = conversation(&t, &c).await;
        t.begin(within(&lease, begun(&r, "u"))).await.unwrap();
        t.finish(TurnEnd { status, lease: Some(lease), ..ended(&r, "half") }).await.unwrap();
        assert_eq!(names(&t.conversation_history(&c).await.unwrap()), "c0 c1");
        assert_eq!(history(&t, &r).await.unwrap(), "c0 c1 u half", "it has what it was given, and what it said");
        assert_eq!(t.response(&r).await.unwrap().conversation_id.as_deref(), Some(c.as_str()));
        t.begin_turn(&c, LEASE).await.unwrap();
    }
    // A lease that was lost, and a conversation that was deleted: it ends all the same, beside the conversation.
    let slow = conversation(&t, "lost").await;
    t.begin(within(&slow, begun("late", "u"))).await.unwrap();
    t.end_turn(&slow).await.unwrap();
    t.append_items("lost", items("x")).await.unwrap();
    let refused = t.finish(TurnEnd { lease: Some(slow.clone()), ..ended("late", "a") }).await;
    assert!(matches!(refused, Err(Error::Locked)), "{refused:?}");
    t.finish(TurnEnd { status: Status::Failed, lease: Some(slow), ..ended("late", "a") }).await.unwrap();
    assert_eq!(names(&t.conversation_history("lost").await.unwrap()), "c0 c1 x");
    assert_eq!(history(&t, "late").await.unwrap(), "c0 c1 u a");
    let lease = conversation(&t, "deleted").await;
    t.begin(within(&lease, begun("orphan", "u"))).await.unwrap();
    t.delete_conversation("deleted").await.unwrap();
    assert_eq!(input(&t, "orphan").await, "c0 c1 u", "it keeps what it was given");
    let refused = t.finish(TurnEnd { lease: Some(lease.clone()), ..ended("orphan", "a") }).await;
    assert!(matches!(refused, Err(Error::Locked)), "{refused:?}");
    t.finish(TurnEnd { status: Status::Failed, lease: Some(lease), ..ended("orphan", "") }).await.unwrap();
}

pub(crate) async fn a_begun_turn_can_be_deleted_and_swept(store: Store) {
    let t = tenant(&store, "begun and gone");
    let lease = conversation(&t, "c").await;
    t.begin(within(&lease, begun("in", "u"))).await.unwrap();
    t.begin(begun("out", "v")).await.unwrap();
    t.begin(NewTurn { expires_at: Some(1_000), ..begun("swept", "w") }).await.unwrap();
    t.delete_response("in").await.unwrap();
    t.delete_response("out").await.unwrap();
    while store.sweep(1_000, 100).await.unwrap() > 0 {}
    for (id, item) in [("in", "msg_u"), ("out", "msg_v"), ("swept", "msg_w")] {
        assert!(matches!(t.response(id).await, Err(Error::NotFound)), "{id}");
        assert!(matches!(t.advance(id, Status::InProgress).await, Err(Error::NotFound)), "{id}");
        assert!(
            matches!(t.finish(ended(id, "a")).await, Err(Error::NotFound)),
            "a late worker brings nothing back: {id}"
        );
        assert!(matches!(t.append_events(id, &events(0, &["x"]), None).await, Err(Error::NotFound)), "{id}");
        assert!(matches!(t.item(item).await, Err(Error::NotFound)), "{id}");
    }
    assert_eq!(names(&t.conversation_history("c").await.unwrap()), "c0 c1");
    t.end_turn(&lease).await.unwrap();
}

pub(crate) async fn statuses_go_one_way(store: Store) {
    let t = tenant(&store, "statuses");
    t.begin(begun("r", "u")).await.unwrap();
    for status in
        [Status::Queued, Status::InProgress, Status::Completed, Status::Incomplete, Status::Failed, Status::Cancelled]
    {
        let id = format!("r-{status}");
        let begun = t.begin(NewTurn { status, ..turn(&id, "u", "") }).await;
        let put = t.put(NewTurn { status, ..turn(&format!("p-{status}"), "u", "a") }).await;
        let advanced = t.advance("r", status).await;
        let outcomes = [begun.is_ok(), put.is_ok(), advanced.is_ok()];
        assert_eq!(outcomes, [!status.is_final(), status.is_final(), !status.is_final()], "{status}");
        for refused in [begun, put, advanced].into_iter().filter_map(Result::err) {
            assert!(matches!(refused, Error::WrongStatus { status: found } if found == status), "{refused:?}");
        }
        if !status.is_final() {
            let refused = t.finish(TurnEnd { status, ..ended("r", "") }).await;
            assert!(matches!(refused, Err(Error::WrongStatus { .. })), "{refused:?}");
        }
    }
    assert!(matches!(
        t.begin(NewTurn { status: Status::Queued, ..turn("o", "u", "a") }).await,
        Err(Error::WrongStatus { .. })
    ));
    for unknown in [t.advance("x", Status::Queued).await, t.finish(ended("x", "")).await] {
        assert!(matches!(unknown, Err(Error::NotFound)), "{unknown:?}");
    }
    let other = tenant(&store, "statuses of another");
    for foreign in [other.advance("r", Status::Queued).await, other.finish(ended("r", "")).await] {
        assert!(matches!(foreign, Err(Error::NotFound)), "{foreign:?}");
    }
}

pub(crate) async fn events_are_read_from_any_number_on(store: Store) {
    let t = tenant(&store, "events");
    t.begin(begun("r", "u")).await.unwrap();
    assert_eq!(log(&t, "r").await, "");
    let large = "x".repeat(60_000);
    t.append_events("r", &events(0, &["a", "b\0", ""]), None).await.unwrap();
    t.append_events("r", &events(3, &["c"]), None).await.unwrap();
    t.append_events("r", &events(4, &[]), None).await.unwrap();
    t.append_events("r", &events(4, &[&large, "d"]), None).await.unwrap();
    let expected = ["0:a", "1:b\0", "2:", "3:c", &format!("4:{large}"), "5:d"];
    for from in 0..=6 {
        let after = u64::try_from(from).unwrap().checked_sub(1);
        let whole = t.events_after("r", after, ALL).await.unwrap();
        assert_eq!(shown(&whole), (expected[from..].join(" "), false), "{from}");
        assert_eq!(whole.status, Status::Queued);
        // Page by page, it is the same, and no page is larger than it may be.
        for limits in
            [EventLimits { events: 1, ..ALL }, EventLimits { events: 2, ..ALL }, EventLimits { bytes: 2, ..ALL }]
        {
            let (mut seen, mut cursor) = (Vec::new(), after);
            loop {
                let page = t.events_after("r", cursor, limits).await.unwrap();
                let bytes: usize = page.events.iter().map(|event| event.json.len()).sum();
                assert!(
                    page.events.len() <= limits.events as usize && (bytes <= limits.bytes || page.events.len() == 1)
                );
                cursor = page.events.last().map_or(cursor, |event| Some(event.sequence));
                seen.push(shown(&page).0);
                if !page.has_more {
                    break;
                }
                assert!(!page.events.is_empty(), "a page that goes on says something");
            }
            seen.retain(|text| !text.is_empty());
            assert_eq!(seen.join(" "), expected[from..].join(" "), "{from} {limits:?}");
        }
    }
    for after in [6, 7, 1_000, u64::MAX] {
        assert_eq!(shown(&t.events_after("r", Some(after), ALL).await.unwrap()), (String::new(), false));
    }
    // The end, and the last events with it.
    let end = TurnEnd { events: Some(events(6, &["done"])), status: Status::Failed, ..ended("r", "") };
    t.finish(end).await.unwrap();
    let rest = t.events_after("r", Some(5), ALL).await.unwrap();
    assert_eq!((shown(&rest), rest.status), (("6:done".to_owned(), false), Status::Failed));
}

pub(crate) async fn events_go_on_where_the_log_ends(store: Store) {
    let t = tenant(&store, "order");
    t.begin(begun("r", "u")).await.unwrap();
    for (first, expected) in [(1, 0), (7, 0), (u64::MAX, 0)] {
        let refused = t.append_events("r", &events(first, &["x"]), None).await;
        assert!(matches!(refused, Err(Error::OutOfOrder { expected: found }) if found == expected), "{refused:?}");
    }
    t.append_events("r", &events(0, &["a", "b"]), None).await.unwrap();
    for first in [0, 1, 3, 9] {
        let refused = t.append_events("r", &events(first, &["x", "y"]), None).await;
        assert!(matches!(refused, Err(Error::OutOfOrder { expected: 2 })), "{refused:?}");
        let end = TurnEnd { events: Some(events(first, &["x"])), ..ended("r", "a") };
        assert!(matches!(t.finish(end).await, Err(Error::OutOfOrder { expected: 2 })));
    }
    assert_eq!(t.response("r").await.unwrap().status, Status::Queued, "an end that is refused changes nothing");
    assert_eq!(history(&t, "r").await.unwrap(), "u");
    assert_eq!(log(&t, "r").await, "0:a 1:b");
    t.finish(TurnEnd { events: Some(events(2, &["c"])), ..ended("r", "a") }).await.unwrap();
    assert_eq!(log(&t, "r").await, "0:a 1:b 2:c");
    assert!(matches!(t.append_events("r", &events(3, &["d"]), None).await, Err(Error::Ended { .. })));
}

pub(crate) async fn events_go_with_their_turn(store: Store) {
    let (t, other) = (tenant(&store, "log"), tenant(&store, "log of another"));
    for t in [&t, &other] {
        t.begin(begun("deleted", "u")).await.unwrap();
        t.begin(NewTurn { expires_at: Some(1_000), ..begun("swept", "v") }).await.unwrap();
        for id in ["deleted", "swept"] {
            t.append_events(id, &events(0, &["a"]), None).await.unwrap();
        }
    }
    t.put(turn("whole", "u", "a")).await.unwrap();
    assert_eq!(log(&t, "whole").await, "");
    assert!(matches!(t.events_after("unknown", None, ALL).await, Err(Error::NotFound)));
    assert!(matches!(t.append_events("unknown", &events(0, &["a"]), None).await, Err(Error::NotFound)));
    t.delete_response("deleted").await.unwrap();
    assert!(matches!(t.events_after("deleted", None, ALL).await, Err(Error::NotFound)));
    assert_eq!(log(&other, "deleted").await, "0:a", "another tenant's");
    while store.sweep(1_000, 100).await.unwrap() > 0 {}
    for t in [&t, &other] {
        assert!(matches!(t.events_after("swept", None, ALL).await, Err(Error::NotFound)));
    }
}

pub(crate) async fn events_of_many_writers_have_no_gap(store: Store) {
    let t = tenant(&store, "writers");
    t.begin(begun("r", "u")).await.unwrap();
    let mut tasks = JoinSet::new();
    for writer in 0..8 {
        let t = t.clone();
        tasks.spawn(async move {
            let (mut next, mut done) = (0, 0);
            while done < 5 {
                match t.append_events("r", &events(next, &[&format!("{writer}-{done}"), "x"]), None).await {
                    Ok(()) => {
                        done += 1;
                        next += 2;
                    }
                    Err(Error::OutOfOrder { expected }) => next = expected,
                    Err(error) => panic!("{error:?}"),
                }
            }
        });
    }
    tasks.join_all().await;
    let page = t.events_after("r", None, ALL).await.unwrap();
    let numbers: Vec<u64> = page.events.iter().map(|event| event.sequence).collect();
    assert_eq!(numbers, (0..80).collect::<Vec<u64>>());
}

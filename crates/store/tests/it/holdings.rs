//! What every backend promises of what a tenant has, and of its erasure.

use std::time::Duration;

use bytes::Bytes;
use store::{
    Clock, Erased, Error, EventLimits, Exported, Holding, Holdings, Item, NewConversation, NewNotice, NewTurn, Page,
    Parent, Status, Store, Tenant, Tenanted, TurnEnd, UsageBatch, UsageKey, UsageSum, Worker,
};

use crate::access::api_key;
use crate::jobs::{MANY, background, claimed, worker};
use crate::keys::key;
use crate::make::{after, items, names, page, tenant, turn};
use crate::turns::{begun, ended, events};
use crate::usage::used;

const LEASE: Duration = Duration::from_hours(1);

fn ids(held: &[Holding]) -> String {
    let ids: Vec<&str> = held.iter().map(|holding| holding.id.as_str()).collect();
    ids.join(" ")
}

async fn converse(t: &Tenanted, id: &str, names: &str) {
    let metadata = Bytes::from_static(br#"{"a":"b"}"#);
    let new = NewConversation { id: id.into(), created_at: 5, metadata, items: items(names) };
    t.create_conversation(new).await.unwrap();
}

async fn everything(t: &Tenanted, most: usize) -> Vec<Holding> {
    let (mut all, mut last) = (Vec::new(), None);
    loop {
        let page = t.held(last, most).await.unwrap();
        assert!(page.len() <= most);
        last = page.last().cloned();
        all.extend(page);
        if last.is_none() {
            return all;
        }
    }
}

pub(crate) async fn what_a_tenant_has_is_listed_and_given_out(store: Store) {
    let (t, other) = (tenant(&store, "holds"), tenant(&store, "holds of another"));
    other.put(turn("resp_other", "x", "y")).await.unwrap();
    assert_eq!(t.held(None, 9).await.unwrap(), []);
    let settings = Some(Bytes::from_static(br#"{"instructions":"short"}"#));
    t.put(NewTurn { settings: settings.clone(), ..turn("resp_b", "u1 u2", "a1") }).await.unwrap();
    t.put(NewTurn { expires_at: Some(9), ..after("resp_b", turn("resp_a", "u3", "a2 a3")) }).await.unwrap();
    t.begin(begun("resp_c", "u4")).await.unwrap();
    converse(&t, "conv_2", "c1 c2").await;
    converse(&t, "conv_1", "").await;
    let lease = t.begin_turn("conv_2", LEASE).await.unwrap();
    t.put(NewTurn { parent: Parent::Conversation(lease), ..turn("resp_d", "c3", "c4") }).await.unwrap();
    t.put(turn("resp_gone", "g", "h")).await.unwrap();
    t.delete_response("resp_gone").await.unwrap();
    for most in [1, 2, 3, 100] {
        assert_eq!(ids(&everything(&t, most).await), "conv_1 conv_2 resp_a resp_b resp_c resp_d", "{most}");
    }
    let all = everything(&t, 4).await;
    let a = Holding {
        id: "resp_a".into(),
        created_at: 1_700_000_000_000,
        expires_at: Some(9),
        status: Some(Status::Completed),
        previous_response: Some("resp_b".into()),
        conversation: None,
    };
    assert_eq!(all[2], a);
    assert_eq!(all[4].status, Some(Status::Queued));
    assert_eq!(all[5].conversation.as_deref(), Some("conv_2"));
    assert_eq!((all[0].created_at, all[0].status), (5, None));
    // Who has expired is not there.
    let later = tenant(&store.clone().with_clock(Clock::new(|| 10)), "holds");
    assert_eq!(ids(&everything(&later, 9).await), "conv_1 conv_2 resp_b resp_c resp_d");
    assert_eq!(later.export(a.clone()).await.unwrap(), None);
    match t.export(a.clone()).await.unwrap() {
        Some(Exported::Response { holding, response, input }) => {
            assert_eq!(holding, a);
            assert_eq!((names(&input), names(&response.output)), ("u3".into(), "a2 a3".into()));
            assert_eq!(response, t.response("resp_a").await.unwrap());
        }
        other => panic!("{other:?}"),
    }
    match t.export(all[3].clone()).await.unwrap() {
        Some(Exported::Response { response, input, .. }) => {
            assert_eq!((response.settings, names(&input)), (settings, "u1 u2".into()));
        }
        other => panic!("{other:?}"),
    }
    match t.export(all[1].clone()).await.unwrap() {
        Some(Exported::Conversation { metadata, items, .. }) => {
            assert_eq!((&metadata[..], names(&items)), (&br#"{"a":"b"}"#[..], "c1 c2 c3 c4".into()));
        }
        other => panic!("{other:?}"),
    }
    // Another's is not there, and a cursor that is gone still is a place.
    assert_eq!(other.export(a).await.unwrap(), None);
    assert_eq!(other.export(all[0].clone()).await.unwrap(), None);
    t.delete_conversation("conv_1").await.unwrap();
    assert_eq!(ids(&t.held(Some(all[0].clone()), 2).await.unwrap()), "conv_2 resp_a");
    let mine = |found: &Holdings| found.tenant.name().starts_with("holds");
    let found: Vec<Holdings> = store.holdings().await.unwrap().into_iter().filter(mine).collect();
    let has = |name: &str, responses, conversations| Holdings { tenant: Tenant::new(name), responses, conversations };
    assert_eq!(found, [has("holds", 4, 1), has("holds of another", 1, 0)]);
    assert!(store.holdings().await.unwrap().is_sorted_by_key(|found| found.tenant.name().to_owned()));
    t.finish(ended("resp_c", "")).await.unwrap();
}

/// One of everything, with this word in each place where a client's words may be. The number of the worker that runs it.
pub(crate) async fn fill(store: &Store, name: &str, word: &str, rows: usize) -> Worker {
    let (t, me) = (tenant(store, name), worker());
    let said = |n: usize| Item {
        id: format!("msg_{word}{n}"),
        body: Bytes::from(format!(r#"{{"type":"message","content":"{word} {n} {}"}}"#, "x".repeat(n % 900))),
    };
    for n in 0..rows {
        let settings = Some(Bytes::from(format!(r#"{{"instructions":"{word} {n}"}}"#)));
        let head = Bytes::from(format!(r#"{{"metadata":"{word}"}}"#));
        let (id, input, output) = (format!("resp_{word}{n}"), vec![said(2 * n)], vec![said(2 * n + 1)]);
        let new = NewTurn { settings, head, input, output, events: Some(events(0, &[word])), ..turn(&id, "", "") };
        t.put(new).await.unwrap();
    }
    let metadata = Bytes::from(format!(r#"{{"topic":"{word}"}}"#));
    let id = format!("conv_{word}");
    t.create_conversation(NewConversation { id: id.clone(), created_at: 1, metadata, items: vec![said(1), said(2)] })
        .await
        .unwrap();
    t.delete_conversation_item(&id, &said(1).id).await.unwrap();
    // One that was deleted, one that ended with a notice, one that runs, with its log.
    t.put(turn(&format!("resp_gone{word}"), "u", "a")).await.unwrap();
    t.delete_response(&format!("resp_gone{word}")).await.unwrap();
    let ends = format!("resp_ends{word}");
    t.begin(begun(&ends, "u")).await.unwrap();
    let body = Bytes::from(format!(r#"{{"data":"{word}"}}"#));
    let notice = NewNotice { id: format!("evt_{word}"), endpoint: format!("https://{word}.example"), body };
    t.finish(TurnEnd { notices: vec![notice], ..ended(&ends, "a") }).await.unwrap();
    let mut job = background();
    job.request = Some(Bytes::from(format!(r#"{{"input":"{word}"}}"#)));
    let runs = NewTurn { events: Some(events(0, &[word])), ..begun(&format!("resp_runs{word}"), word) };
    let claim = claimed(t.begin_job(runs, job, &me, MANY, LEASE).await.unwrap());
    t.dispatch(&claim).await.unwrap();
    t.append_events(claim.response_id(), &events(1, &[word, word]), Some(&claim)).await.unwrap();
    t.claim_key(key(&format!("idem {word}"), 1, &format!("resp_new{word}"), &me), LEASE, LEASE).await.unwrap();
    let used =
        UsageKey { tenant: name.into(), key: format!("key_{word}"), provider: "p".into(), model: "m".into(), hour: 1 };
    let sum = UsageSum { requests: 1, ..UsageSum::default() };
    store.add_usage(UsageBatch { worker: me, number: 1, rows: vec![(used, sum)] }).await.unwrap();
    store.create_api_key(store::ApiKey { tenant: Tenant::new(name), ..api_key(&format!("of {name}")) }).await.unwrap();
    store.set_tenant_terms(&Tenant::new(name), Some("{}".into())).await.unwrap();
    me
}

pub(crate) async fn an_erased_tenant_is_gone(store: Store) {
    let (gone, stays) = (tenant(&store, "erased"), tenant(&store, "erased not"));
    let me = fill(&store, "erased", "canary", 30).await;
    fill(&store, "erased not", "other", 5).await;
    let erased = store.erase_tenant(&Tenant::new("erased")).await.unwrap();
    assert_eq!((erased.responses, erased.conversations), (32, 1), "{erased:?}");
    assert!(erased.items >= 64 && erased.others > 30, "{erased:?}");
    assert_eq!(store.erase_tenant(&Tenant::new("erased")).await.unwrap(), Erased::default());
    // As if it had never been there.
    assert_eq!(gone.held(None, 9).await.unwrap(), []);
    assert!(store.holdings().await.unwrap().iter().all(|found| found.tenant.name() != "erased"));
    assert!(matches!(gone.response("resp_canary1").await, Err(Error::NotFound)));
    assert!(matches!(gone.item("msg_canary1").await, Err(Error::NotFound)));
    assert!(matches!(gone.conversation("conv_canary").await, Err(Error::NotFound)));
    let all = EventLimits { events: 9, bytes: 99 };
    assert!(matches!(gone.events_after("resp_runscanary", None, all).await, Err(Error::NotFound)));
    assert_eq!(store.heartbeat(&me, LEASE).await.unwrap(), [], "its job is not its own any more");
    assert!(store.due_notices(99, Duration::ZERO).await.unwrap().iter().all(|due| due.tenant.name() != "erased"));
    assert_eq!(used(&store, "erased").await, []);
    assert_eq!(gone.key_user("idem canary").await.unwrap(), None);
    // What it had runs on, and is told.
    let late = gone.finish(ended("resp_runscanary", "a")).await;
    assert!(matches!(late, Err(Error::NotFound | Error::Lost)), "{late:?}");
    // Its keys and its terms stay, and it can begin anew.
    let list = store.access_list(None).await.unwrap().unwrap();
    assert!(list.keys.iter().any(|key| key.tenant.name() == "erased"));
    assert!(list.tenants.iter().any(|(tenant, _)| tenant.name() == "erased"));
    gone.put(turn("resp_canary1", "u", "a")).await.unwrap();
    assert_eq!(names(&gone.response("resp_canary1").await.unwrap().output), "a");
    // Others are as they were.
    assert_eq!(stays.held(None, 99).await.unwrap().len(), 8);
    assert_eq!(used(&store, "erased not").await.len(), 1);
    let list: Page = page(9, store::Order::OldestFirst, None);
    assert_eq!(stays.conversation_items("conv_other", list).await.unwrap().items.len(), 1);
    stays.finish(ended("resp_runsother", "a")).await.unwrap();
    for due in store.due_notices(99, Duration::ZERO).await.unwrap() {
        store.notice_done(&due).await.unwrap();
    }
    for name in ["erased", "erased not"] {
        store.delete_api_key(&format!("key_of {name}")).await.unwrap();
        store.set_tenant_terms(&Tenant::new(name), None).await.unwrap();
        store.erase_tenant(&Tenant::new(name)).await.unwrap();
    }
}

//! Keys that the store has: made, rotated, revoked, forgotten; on one instance and on two; while the store is away.

use std::time::Duration;

use server::access::Terms;
use server::access::manage::{self, ManageError, NewKey};
use store::{PostgresOptions, SqliteOptions, Store};
use testkit::Postgres;

use super::*;

fn on(upstream: &Upstream, session: &str, more: &str) -> String {
    text(upstream, more).replace("{backend: memory}", session)
}

async fn start(session: &str, more: &str) -> Rig {
    let upstream = Upstream::start(Script::sse(&chat::chunks())).await.unwrap();
    let config = rig::parse(&on(&upstream, session, more));
    Rig::serving(upstream, config).await.unwrap()
}

fn named(name: &str, tenant: &str) -> NewKey {
    NewKey { name: name.to_owned(), tenant: Some(tenant.to_owned()), ..NewKey::default() }
}

async fn unstored(rig: &Rig, key: &str) -> Answer {
    let body = json!({"model": "m", "input": "Hi", "store": false});
    send(rig, key, Method::POST, "/v1/responses", &body).await
}

/// Asks until the answer is this; what revoked keys and new ones come to, everywhere, a few looks later.
async fn until(rig: &Rig, key: &str, status: u16) -> Answer {
    for _ in 0..600 {
        let answer = unstored(rig, key).await;
        if answer.status == status {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never {status}: {}", unstored(rig, key).await.status);
}

/// Keys that were made in the same millisecond are in no order.
fn sorted(mut ids: Vec<String>) -> Vec<String> {
    ids.sort_unstable();
    ids
}

#[tokio::test]
async fn keys_are_made_rotated_revoked_and_forgotten() {
    let store = Store::memory(store::MemoryLimits::default()).unwrap();
    let first = manage::create(&store, named("team", "a")).await.unwrap();
    assert!(first.closes_the_door && first.key.expose().starts_with("gdx_") && first.key.expose().len() == 37);
    assert_eq!(first.info.hint, first.key.expose()[33..]);
    assert!(!format!("{first:?}").contains(first.key.expose()));
    assert!(!manage::create(&store, named("other", "b")).await.unwrap().closes_the_door);
    for (new, expected) in [
        (named("team", "b"), "there is a key named team already; revoke it first, or rotate it"),
        (named("a b", "a"), "a name is 1 to 64 letters, digits, `-`, `_` and `.`"),
        (named("x", "a/b"), "a tenant is 1 to 64 letters, digits, `-`, `_` and `.`"),
        (named(&first.info.id, "a"), "a name is not what ids of keys look like: it could be another key's"),
        (NewKey { expires_at: Some(1), ..named("x", "a") }, "the key would have expired already"),
        (
            NewKey { terms: Terms { rpm: Some(0), ..Terms::default() }, ..named("x", "a") },
            "with rpm 0 nothing could be done",
        ),
        (
            NewKey { terms: Terms { tools: Some(vec!["shell".into()]), ..Terms::default() }, ..named("x", "a") },
            "there is no hosted tool `shell`: tools are `web_search`, `mcp` and `mcp:LABEL`",
        ),
    ] {
        assert_eq!(manage::create(&store, new).await.unwrap_err().to_string(), expected);
    }
    let rotated = manage::rotate(&store, "team", Duration::from_hours(1)).await.unwrap();
    let old = manage::show(&store, &first.info.id).await.unwrap();
    assert_eq!((old.name.as_str(), old.replaced_by.as_ref()), ("team", Some(&rotated.info.id)));
    assert!(old.expires_at.is_some() && old.revoked_at.is_none());
    assert_eq!(manage::show(&store, "team").await.unwrap().id, rotated.info.id);
    assert!(matches!(manage::rotate(&store, &first.info.id, Duration::ZERO).await, Err(ManageError::Invalid(_))));
    assert!(matches!(manage::delete(&store, "team").await, Err(ManageError::Works(_))));
    // By its name all that was rotated is dead with it.
    let revoked = manage::revoke(&store, "team").await.unwrap();
    assert_eq!(revoked.info.id, rotated.info.id);
    assert_eq!(sorted(revoked.ids), sorted(vec![first.info.id.clone(), rotated.info.id.clone()]));
    for id in [&first.info.id, &rotated.info.id] {
        assert!(manage::show(&store, id).await.unwrap().revoked_at.is_some());
    }
    assert_eq!(manage::revoke(&store, "team").await.unwrap().ids, Vec::<String>::new(), "none works any more");
    manage::create(&store, named("team", "a")).await.unwrap();
    let names = |keys: &[manage::KeyInfo]| keys.iter().map(|key| key.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&manage::list(&store).await.unwrap()), ["team", "team", "team", "other"]);
    manage::delete(&store, "team").await.unwrap();
    assert_eq!(names(&manage::list(&store).await.unwrap()), ["team", "other"]);
    let revoked = manage::revoke(&store, "no").await.map(|revoked| revoked.info);
    for unknown in [manage::show(&store, "no").await, revoked, manage::delete(&store, "no").await] {
        assert_eq!(unknown.unwrap_err().to_string(), "there is no key no");
    }
    let terms = Terms { rpm: Some(5), ..Terms::default() };
    manage::set_tenant_terms(&store, "a", &terms).await.unwrap();
    assert_eq!(manage::tenant_terms(&store, "a").await.unwrap(), terms);
    assert_eq!(manage::tenant_terms(&store, "b").await.unwrap(), Terms::default());
}

/// One that was made for a while is not good for ever when it is rotated, be it in time or too late.
#[tokio::test]
async fn a_key_that_ends_is_rotated_to_one_that_ends() {
    let store = Store::memory(store::MemoryLimits::default()).unwrap();
    let now = server::checkup::unix_seconds;
    let lives = |name, seconds| NewKey { expires_at: Some(now() + seconds), ..named(name, "a") };
    let long = manage::create(&store, lives("long", 900)).await.unwrap().info;
    let rotated = manage::rotate(&store, "long", Duration::from_hours(1)).await.unwrap();
    assert_eq!((rotated.info.expires_at, rotated.older_ends_at), (long.expires_at, long.expires_at));
    let short = manage::create(&store, lives("short", 2)).await.unwrap().info;
    while short.expires_at.unwrap() > now() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let rotated = manage::rotate(&store, "short", Duration::from_hours(1)).await.unwrap();
    assert!((now() + 1..=now() + 2).contains(&rotated.info.expires_at.unwrap()), "{rotated:?}");
    assert_eq!(rotated.older_ends_at, short.expires_at);
}

/// Whoever ends a key while another puts a new one in its place has ended both, or the other is told that it is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_is_revoked_while_it_is_rotated_is_dead() {
    let store = Store::memory(store::MemoryLimits::default()).unwrap();
    for round in 0..50_u64 {
        let name = format!("team{round}");
        manage::create(&store, named(&name, "a")).await.unwrap();
        let (rotating, revoking) = (store.clone(), store.clone());
        let (to_rotate, to_revoke) = (name.clone(), name.clone());
        let rotated = rig::spawn(async move { manage::rotate(&rotating, &to_rotate, Duration::from_hours(1)).await });
        let revoked = rig::spawn(async move {
            tokio::time::sleep(Duration::from_micros(round * 20)).await;
            manage::revoke(&revoking, &to_revoke).await
        });
        let (rotated, revoked) = (rotated.await.unwrap(), revoked.await.unwrap().unwrap());
        assert!(revoked.info.revoked_at.is_some() && !revoked.ids.is_empty(), "{revoked:?}");
        match rotated {
            Ok(made) => assert!(revoked.ids.contains(&made.info.id), "{made:?} {revoked:?}"),
            Err(error) => assert!(matches!(error, ManageError::Invalid(_)), "{error}"),
        }
        let keys = manage::list(&store).await.unwrap();
        let alive = keys.iter().find(|key| key.name == name && key.revoked_at.is_none());
        assert!(alive.is_none(), "{alive:?}");
    }
}

#[tokio::test]
async fn a_file_remembers_who_may_ask_and_a_revoked_key_keeps_the_door_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let session = format!("{{backend: sqlite, sqlite: {{path: '{}'}}}}", path.display());
    let store = || Store::sqlite(&path, &SqliteOptions::default()).unwrap();
    let closing = store();
    let made = manage::create(&closing, named("team", "a")).await.unwrap();
    let only_fast = Terms { models: Some(vec!["fast".into()]), ..Terms::default() };
    manage::set_tenant_terms(&closing, "a", &only_fast).await.unwrap();
    closing.close().await;

    // An address that others reach is guarded by it.
    let rig = start(&session, "server: {host: 0.0.0.0}\n").await;
    object(&ask(&rig, made.key.expose(), "fast").await);
    assert_eq!(
        error(&ask(&rig, made.key.expose(), "m").await).domain,
        "model_not_allowed",
        "what its tenant may not use"
    );
    assert_eq!(rig.post(&json!({"model": "fast", "input": "Hi"})).await.status, 401);
    rig.stop().await;

    let closing = store();
    manage::revoke(&closing, "team").await.unwrap();
    closing.close().await;
    let rig = start(&session, "").await;
    let (revoked, unknown) = (ask(&rig, made.key.expose(), "fast").await, rig.post(&json!({"model": "m"})).await);
    assert_eq!((error(&revoked).code.as_str(), unknown.status), ("invalid_api_key", 401));
    rig.stop().await;

    let closing = store();
    manage::delete(&closing, "team").await.unwrap();
    closing.close().await;
    let rig = start(&session, "").await;
    object(&rig.post(&json!({"model": "m", "input": "Hi"})).await);
    let bytes = std::fs::read(&path).unwrap();
    assert!(!bytes.windows(37).any(|window| window == made.key.expose().as_bytes()), "only its hash was stored");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_instance_changes_holds_on_the_other_also_while_the_database_is_away() {
    let Some(mut postgres) = Postgres::start() else { return };
    let options = "acquire_ms: 500, statement_ms: 1000, retry_ms: 200";
    let session = format!("{{backend: postgres, postgres: {{url: '{}', {options}}}}}", postgres.url());
    let one = start(&session, "").await;
    let two = start(&session, "limits: {key_grace: 1s}\nkeys: [{name: own, key: key-of-the-tenant-a-0001}]\n").await;
    let store = Store::postgres(&postgres.url(), &PostgresOptions::default()).await.unwrap();
    object(&unstored(&one, "nothing").await);
    let made = manage::create(&store, named("team", "a")).await.unwrap();
    // The first key closes the door everywhere.
    until(&one, "nothing", 401).await;
    for rig in [&one, &two] {
        until(rig, made.key.expose(), 200).await;
    }
    let rotated = manage::rotate(&store, "team", Duration::ZERO).await.unwrap();
    for rig in [&one, &two] {
        object(&unstored(rig, rotated.key.expose()).await);
        until(rig, made.key.expose(), 401).await;
    }
    // A new one is good everywhere at once, also beside one that nobody has made.
    for round in 0..5 {
        let new = manage::create(&store, named(&format!("new{round}"), "a")).await.unwrap();
        object(&unstored(&one, new.key.expose()).await);
        let never_made = server::access::key::make().unwrap();
        for _ in 0..2 {
            assert_eq!(error(&unstored(&two, never_made.expose()).await).code, "invalid_api_key");
        }
        object(&unstored(&two, new.key.expose()).await);
        // So that this is no flood, of which less is looked up.
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let doomed = manage::create(&store, named("doomed", "a")).await.unwrap();
    for rig in [&one, &two] {
        until(rig, doomed.key.expose(), 200).await;
    }
    manage::revoke(&store, "doomed").await.unwrap();
    for rig in [&one, &two] {
        until(rig, doomed.key.expose(), 401).await;
    }

    postgres.crash();
    // From memory; and for the one that has little patience only for a while.
    object(&unstored(&one, rotated.key.expose()).await);
    for key in [rotated.key.expose(), "a key that may be a new one"] {
        let away = until(&two, key, 503).await;
        assert_eq!(error(&away).code, "keys_unavailable");
        assert!(away.header("retry-after").is_some());
    }
    until(&one, "a key that may be a new one", 503).await;
    object(&unstored(&one, rotated.key.expose()).await);
    object(&unstored(&two, A).await);
    postgres.up();
    until(&two, rotated.key.expose(), 200).await;
    until(&one, "a key that is none", 401).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_a_revoked_key_fails() {
    let Some(postgres) = Postgres::start() else { return };
    let session = format!(
        "{{backend: postgres, postgres: {{url: '{}'}}, background: {{concurrency: 1, queue: 10}}}}",
        postgres.url()
    );
    let store = Store::postgres(&postgres.url(), &PostgresOptions::default()).await.unwrap();
    let [one, other] = [named("one", "a"), named("other", "a")].map(|new| manage::create(&store, new));
    let (one, other) = (one.await.unwrap(), other.await.unwrap());
    let rig = start(&session, "").await;
    rig.upstream.queue(Script::event_stream().event(&chat::text("Hel")).stall());
    let body = json!({"model": "m", "input": "Hi", "background": true});
    let running = rig::object_now(&send(&rig, other.key.expose(), Method::POST, "/v1/responses", &body).await);
    rig.upstream.arrived(1).await;
    let waiting = rig::object_now(&send(&rig, one.key.expose(), Method::POST, "/v1/responses", &body).await);
    manage::revoke(&store, "one").await.unwrap();
    until(&rig, one.key.expose(), 401).await;
    let path = |response: &Value| format!("/v1/responses/{}", response["id"].as_str().unwrap());
    send(&rig, other.key.expose(), Method::POST, &format!("{}/cancel", path(&running)), &Value::Null).await;
    fails_as_revoked(&rig, other.key.expose(), &path(&waiting)).await;
}

/// What waits is asked for with a key that is revoked meanwhile.
pub(super) async fn fails_as_revoked(rig: &Rig, key: &str, path: &str) {
    fails_for_its_key(rig, key, path, "has been revoked").await;
}

/// It fails, and says why in these words.
pub(super) async fn fails_for_its_key(rig: &Rig, key: &str, path: &str, why: &str) {
    for _ in 0..600 {
        let ended = get(rig, key, path).await.json();
        if ended["status"] == "failed" {
            assert!(ended["error"]["message"].as_str().unwrap().contains(why), "{ended}");
            assert_eq!(ended["error"]["code"], "invalid_api_key", "{ended}");
            return;
        }
        assert_ne!(ended["status"], "completed", "{ended}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it never failed");
}

/// The same for one that is claimed already, and waits for a place among the turns of its key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_a_place_of_a_revoked_key_fails() {
    let Some(postgres) = Postgres::start() else { return };
    let session = format!("{{backend: postgres, postgres: {{url: '{}'}}}}", postgres.url());
    let store = Store::postgres(&postgres.url(), &PostgresOptions::default()).await.unwrap();
    let terms = Terms { concurrency: Some(1), ..Terms::default() };
    let one = manage::create(&store, NewKey { terms, ..named("one", "a") }).await.unwrap();
    let other = manage::create(&store, named("other", "a")).await.unwrap();
    let rig = start(&session, "").await;
    rig.upstream.queue(Script::event_stream().event(&chat::text("Hel")).stall());
    let body = json!({"model": "m", "input": "Hi", "background": true});
    let [running, waiting] = [(); 2].map(|()| send(&rig, one.key.expose(), Method::POST, "/v1/responses", &body));
    let running = rig::object_now(&running.await);
    rig.upstream.arrived(1).await;
    let waiting = rig::object_now(&waiting.await);
    // It has looked for its place, and found none.
    tokio::time::sleep(Duration::from_millis(500)).await;
    manage::revoke(&store, "one").await.unwrap();
    until(&rig, one.key.expose(), 401).await;
    let path = |response: &Value| format!("/v1/responses/{}", response["id"].as_str().unwrap());
    send(&rig, other.key.expose(), Method::POST, &format!("{}/cancel", path(&running)), &Value::Null).await;
    fails_as_revoked(&rig, other.key.expose(), &path(&waiting)).await;
}

/// The same for the last key of all: when it is forgotten the door is open, but not for what it has asked for.
#[tokio::test]
async fn what_waits_for_the_last_key_fails_also_when_the_door_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let session = format!(
        "{{backend: sqlite, sqlite: {{path: '{}'}}, background: {{concurrency: 1, queue: 10}}}}",
        path.display()
    );
    let store = || Store::sqlite(&path, &SqliteOptions::default()).unwrap();
    let opened = store();
    let made = manage::create(&opened, named("only", "default")).await.unwrap();
    opened.close().await;
    let upstream = Upstream::start(Script::event_stream().event(&chat::text("Hel")).stall()).await.unwrap();
    let config = rig::parse(&on(&upstream, &session, "server: {drain_timeout: 0s}\n"));
    let rig = Rig::serving(upstream, config).await.unwrap();
    let body = json!({"model": "m", "input": "Hi", "background": true});
    let submit = async || rig::object_now(&send(&rig, made.key.expose(), Method::POST, "/v1/responses", &body).await);
    submit().await;
    rig.upstream.arrived(1).await;
    let waiting = submit().await;
    rig.stop().await;

    let opened = store();
    manage::revoke(&opened, "only").await.unwrap();
    manage::delete(&opened, "only").await.unwrap();
    opened.close().await;
    let rig = start(&session, "").await;
    fails_as_revoked(&rig, "nothing", &format!("/v1/responses/{}", waiting["id"].as_str().unwrap())).await;
    object(&rig.post(&json!({"model": "m", "input": "Hi"})).await);
    assert_eq!(rig.upstream.requests().len(), 1, "nobody was asked but for the one without a key");
}

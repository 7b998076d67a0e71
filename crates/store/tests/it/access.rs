//! What every backend promises of API keys.

use store::{AccessList, ApiKey, Error, Store, Tenant};
use tokio::task::JoinSet;

/// A key whose id, name and hash come from this name.
pub(crate) fn api_key(name: &str) -> ApiKey {
    let mut hash = [0; 32];
    hash.iter_mut().zip(name.bytes()).for_each(|(into, byte)| *into = byte);
    ApiKey {
        id: format!("key_{name}"),
        tenant: Tenant::new("team"),
        name: name.to_owned(),
        hash,
        hint: "…wxyz".to_owned(),
        created_at: 1_000,
        expires_at: None,
        revoked_at: None,
        replaced_by: None,
        terms: r#"{"rpm":3}"#.to_owned(),
    }
}

pub(crate) async fn listed(store: &Store) -> AccessList {
    store.access_list(None).await.unwrap().unwrap()
}

fn find(list: &AccessList, id: &str) -> ApiKey {
    list.keys.iter().find(|key| key.id == id).unwrap_or_else(|| panic!("no {id}")).clone()
}

/// Runs a change, and says whether everybody learns of it: exactly then, when it was made.
async fn told<T>(store: &Store, change: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let before = listed(store).await;
    assert_eq!(store.access_list(Some(before.version)).await.unwrap(), None);
    let changed = change.await;
    let after = store.access_list(Some(before.version)).await.unwrap();
    match (&changed, after) {
        (Ok(_), Some(after)) => assert!(after.version > before.version, "{before:?} {after:?}"),
        (Err(_), None) => assert_eq!(listed(store).await, before),
        (_, after) => panic!("changed: {}, told: {}", changed.is_ok(), after.is_some()),
    }
    changed
}

pub(crate) async fn api_keys_come_and_go(store: Store) {
    let all = ApiKey {
        tenant: Tenant::new("odd\0tenant"),
        hash: [255; 32],
        expires_at: Some(i64::MAX),
        terms: "{\"models\":[\"\\u0000ż\"]}".to_owned(),
        ..api_key("every field")
    };
    told(&store, store.create_api_key(all.clone())).await.unwrap();
    assert_eq!(find(&listed(&store).await, "key_every field"), all);
    let plain = api_key("plain");
    told(&store, store.create_api_key(plain.clone())).await.unwrap();
    let other = ApiKey { id: "key_other".into(), name: "other".into(), hash: [9; 32], ..plain.clone() };
    for (what, taken) in [
        ("id", ApiKey { id: plain.id.clone(), ..other.clone() }),
        ("name", ApiKey { name: plain.name.clone(), ..other.clone() }),
        ("name in another tenant", ApiKey { name: plain.name.clone(), tenant: Tenant::new("b"), ..other.clone() }),
        ("hash", ApiKey { hash: plain.hash, ..other.clone() }),
    ] {
        let refused = told(&store, store.create_api_key(taken)).await;
        assert!(matches!(refused, Err(Error::Conflict)), "{what}: {refused:?}");
    }
    // Once revoked it stays so, and its name is free.
    told(&store, store.revoke_api_key(&plain.id, 5_000)).await.unwrap();
    told(&store, store.revoke_api_key(&plain.id, 9_000)).await.unwrap();
    assert_eq!(find(&listed(&store).await, &plain.id).revoked_at, Some(5_000));
    told(&store, store.create_api_key(ApiKey { name: plain.name.clone(), ..other })).await.unwrap();
    told(&store, store.delete_api_key(&plain.id)).await.unwrap();
    assert!(listed(&store).await.keys.iter().all(|key| key.id != plain.id));
    for id in [plain.id.as_str(), "key_never", ""] {
        assert!(matches!(told(&store, store.revoke_api_key(id, 1)).await, Err(Error::NotFound)), "{id}");
        assert!(matches!(told(&store, store.delete_api_key(id)).await, Err(Error::NotFound)), "{id}");
    }
    for id in ["key_every field", "key_other"] {
        store.delete_api_key(id).await.unwrap();
    }
}

pub(crate) async fn a_key_is_rotated_and_keeps_its_name(store: Store) {
    let (old, until) = (ApiKey { expires_at: Some(10_000), ..api_key("rotated") }, 7_000);
    store.create_api_key(old.clone()).await.unwrap();
    let new = |n: u8| ApiKey {
        id: format!("key_rotated{n}"),
        hash: [100 + n; 32],
        name: "as it came".to_owned(),
        created_at: 6_000,
        terms: format!(r#"{{"rpm":{n}}}"#),
        ..api_key("rotated")
    };
    let same_hash = ApiKey { hash: old.hash, ..new(1) };
    let refused = told(&store, store.rotate_api_key(&old.id, same_hash, until)).await;
    assert!(matches!(refused, Err(Error::Conflict)), "{refused:?}");
    told(&store, store.rotate_api_key(&old.id, new(1), until)).await.unwrap();
    let list = listed(&store).await;
    assert_eq!(find(&list, "key_rotated1"), ApiKey { name: "rotated".into(), ..new(1) });
    let replaced = ApiKey { replaced_by: Some("key_rotated1".into()), expires_at: Some(until), ..old.clone() };
    assert_eq!(find(&list, &old.id), replaced);
    // The name is the new one's alone.
    let taken = ApiKey { name: "rotated".into(), ..new(2) };
    assert!(matches!(store.create_api_key(taken).await, Err(Error::Conflict)));
    // What was replaced is not replaced again; an earlier end than `until` stays.
    assert!(matches!(told(&store, store.rotate_api_key(&old.id, new(2), until)).await, Err(Error::NotFound)));
    told(&store, store.rotate_api_key("key_rotated1", ApiKey { expires_at: Some(50), ..new(2) }, 8_000)).await.unwrap();
    told(&store, store.rotate_api_key("key_rotated2", new(3), 60)).await.unwrap();
    let list = listed(&store).await;
    let ends: Vec<Option<i64>> = (1..4).map(|n| find(&list, &format!("key_rotated{n}")).expires_at).collect();
    assert_eq!(ends, [Some(8_000), Some(50), None]);
    // A revoked key is not brought back by it.
    store.revoke_api_key("key_rotated3", 1).await.unwrap();
    assert!(matches!(told(&store, store.rotate_api_key("key_rotated3", new(4), 1)).await, Err(Error::NotFound)));
    assert!(matches!(told(&store, store.rotate_api_key("key_never", new(4), 1)).await, Err(Error::NotFound)));
    store.delete_api_key(&old.id).await.unwrap();
    for n in 1..4 {
        store.delete_api_key(&format!("key_rotated{n}")).await.unwrap();
    }
}

pub(crate) async fn keys_of_a_name_are_revoked_together(store: Store) {
    let at = |n: i64| ApiKey { created_at: n, ..api_key(&format!("together {n}")) };
    store.create_api_key(ApiKey { name: "together".into(), ..at(1) }).await.unwrap();
    store.rotate_api_key(&at(1).id, at(2), 7_000).await.unwrap();
    store.create_api_key(at(3)).await.unwrap();
    let mut ids = told(&store, store.revoke_api_keys_named("together", 5_000)).await.unwrap();
    ids.sort();
    assert_eq!(ids, [at(1).id, at(2).id]);
    let list = listed(&store).await;
    let revoked = [1, 2, 3].map(|n| find(&list, &at(n).id).revoked_at);
    assert_eq!(revoked, [Some(5_000), Some(5_000), None]);
    // The name is free; of those that were revoked before nothing changes.
    store.create_api_key(ApiKey { name: "together".into(), ..at(4) }).await.unwrap();
    assert_eq!(store.revoke_api_keys_named("together", 6_000).await.unwrap(), [at(4).id]);
    let before = listed(&store).await;
    assert_eq!(store.revoke_api_keys_named("together", 8_000).await.unwrap(), [""; 0]);
    assert_eq!(store.revoke_api_keys_named("nobody's", 8_000).await.unwrap(), [""; 0]);
    assert_eq!(listed(&store).await, before);
    for n in 1..5 {
        store.delete_api_key(&at(n).id).await.unwrap();
    }
}

/// Whoever revokes a name and whoever rotates it at the same time: no key of that name is left.
pub(crate) async fn none_outlives_its_name(store: Store) {
    for round in 0..20_u8 {
        let name = format!("outlived {round}");
        let key = |n: u8| ApiKey { id: format!("key_{name} {n}"), hash: [100 + n; 32], ..api_key(&name) };
        store.create_api_key(key(0)).await.unwrap();
        let mut tasks = JoinSet::new();
        for n in 0..4 {
            let (store, old, new) = (store.clone(), key(n).id, key(n + 1));
            tasks.spawn(async move {
                // The second is tried until the first has been made, or will not be.
                for _ in 0..50 {
                    match store.rotate_api_key(&old, new.clone(), i64::MAX).await {
                        Err(Error::NotFound) => {}
                        rotated => return rotated.unwrap(),
                    }
                }
            });
        }
        let (revoking, named) = (store.clone(), name.clone());
        tasks.spawn(async move {
            tokio::time::sleep(std::time::Duration::from_micros(u64::from(round) * 300)).await;
            revoking.revoke_api_keys_named(&named, 1).await.unwrap();
        });
        tasks.join_all().await;
        let keys = listed(&store).await.keys;
        let alive: Vec<_> = keys.iter().filter(|key| key.name == name && key.revoked_at.is_none()).collect();
        assert!(alive.is_empty(), "{alive:?}");
        for key in keys {
            store.delete_api_key(&key.id).await.unwrap();
        }
    }
}

pub(crate) async fn tenants_have_terms(store: Store) {
    let (a, b) = (Tenant::new("terms a"), Tenant::new("terms b"));
    told(&store, store.set_tenant_terms(&b, Some("{}".to_owned()))).await.unwrap();
    told(&store, store.set_tenant_terms(&a, Some("1".to_owned()))).await.unwrap();
    told(&store, store.set_tenant_terms(&a, Some("2".to_owned()))).await.unwrap();
    let expected = vec![(a.clone(), "2".to_owned()), (b.clone(), "{}".to_owned())];
    assert_eq!(listed(&store).await.tenants, expected);
    told(&store, store.set_tenant_terms(&a, None)).await.unwrap();
    assert_eq!(listed(&store).await.tenants, expected[1..]);
    // Nothing was said of it.
    let before = listed(&store).await.version;
    store.set_tenant_terms(&a, None).await.unwrap();
    assert_eq!(store.access_list(Some(before)).await.unwrap(), None);
    store.set_tenant_terms(&b, None).await.unwrap();
}

/// However many change something at once, who holds a version holds everything that came before it.
pub(crate) async fn no_change_is_missed(store: Store) {
    one_version_for_all(&[store.clone(), store]).await;
}

pub(crate) async fn one_version_for_all(stores: &[Store]) {
    let mut tasks = JoinSet::new();
    for n in 0..24_usize {
        let store = stores[n % stores.len()].clone();
        tasks.spawn(async move {
            let key = api_key(&format!("many {n}"));
            store.create_api_key(key.clone()).await.unwrap();
            let list = listed(&store).await;
            assert!(list.keys.contains(&key));
            store.revoke_api_key(&key.id, 1).await.unwrap();
            list
        });
    }
    let mut lists = tasks.join_all().await;
    lists.sort_by_key(|list| list.version);
    for pair in lists.windows(2) {
        let (older, newer) = (&pair[0], &pair[1]);
        assert!(older.version < newer.version || older == newer, "one version of two lists");
        let ids = |list: &AccessList| list.keys.iter().map(|key| key.id.clone()).collect::<Vec<_>>();
        let newer = ids(newer);
        assert!(ids(older).iter().all(|id| newer.contains(id)));
    }
    let names = vec![api_key("one name"); 16];
    let mut tasks = JoinSet::new();
    for (n, key) in (0_u8..).zip(names) {
        let store = stores[usize::from(n) % stores.len()].clone();
        let key = ApiKey { id: format!("key_one name {n}"), hash: [n; 32], ..key };
        tasks.spawn(async move { store.create_api_key(key).await.is_ok() });
    }
    assert_eq!(tasks.join_all().await.into_iter().filter(|made| *made).count(), 1, "a name is one key's");
    for key in listed(&stores[0]).await.keys {
        stores[0].delete_api_key(&key.id).await.unwrap();
    }
}

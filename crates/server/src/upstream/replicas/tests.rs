//! Choosing among addresses whose condition changes, and changing the list of them.

use super::*;
use crate::config::ad_hoc;

/// A provider with these addresses; nobody is there.
fn config(urls: &[&str]) -> ProviderConfig {
    let config = ad_hoc("openai-compatible", Some(urls[0]), None, &|_| None).unwrap();
    ProviderConfig { base_urls: urls.iter().map(|url| (*url).to_owned()).collect(), ..config }
}

const URLS: [&str; 3] = ["http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1", "http://127.0.0.1:3/v1"];

fn replicas(urls: &[&str], before: Option<&Replicas>) -> Replicas {
    Replicas::new(&config(urls), ResilienceConfig::default(), before).unwrap()
}

/// Where the conversation goes, and how long it counts there.
fn choose(replicas: &Replicas, number: u32, stays: Option<&Arc<Replica>>) -> (Arc<str>, OpenRequest) {
    let models: Vec<_> = replicas.all().iter().map(|replica| replica.models.of("m")).collect();
    let among: Vec<_> = replicas.all().iter().zip(&models).map(|(replica, model)| (replica, &**model)).collect();
    let (order, open) = replicas.choose(Affinity::of([&number.to_le_bytes()[..]]), &among, stays);
    (Arc::clone(&among[order[0]].0.url), open.unwrap())
}

fn all(replicas: &Replicas) -> Vec<Arc<str>> {
    (0..300).map(|number| choose(replicas, number, None).0).collect()
}

#[tokio::test(start_paused = true)]
async fn who_is_down_is_left_and_come_back_to() {
    let replicas = replicas(&URLS, None);
    let home = all(&replicas);
    let second = &replicas.all()[1];
    for (down, back) in [(true, 200_u16), (false, 200)] {
        if down {
            second.missed();
            second.missed();
        } else {
            second.answered(503);
        }
        for (was, is) in home.iter().zip(all(&replicas)) {
            assert!(*is != *second.url && (*was == is || *was == second.url));
        }
        second.answered(back);
        let starting = all(&replicas);
        let came = starting.iter().filter(|url| **url == second.url).count();
        assert!(came > 0 && came < 30, "slowly at first: {came}");
        tokio::time::advance(std::time::Duration::from_secs(10)).await;
        assert_eq!(all(&replicas), home);
    }
}

#[tokio::test(start_paused = true)]
async fn another_list_moves_only_what_it_must() {
    let before = replicas(&URLS, None);
    let home = all(&before);
    let _busy = choose(&before, 0, None);
    before.all()[0].missed();
    // The last is gone, and the order is another.
    let after = replicas(&[URLS[1], URLS[0]], Some(&before));
    assert!(Arc::ptr_eq(&before.all()[0], &after.all()[1]) && Arc::ptr_eq(&before.all()[1], &after.all()[0]));
    for (was, is) in home.iter().zip(all(&after)) {
        assert!(*was == is || **was == *URLS[2]);
    }
    // It comes again, and begins slowly; the others do not.
    let again = replicas(&URLS, Some(&after));
    let states: Vec<_> = again.states().iter().map(|state| state.state).collect();
    assert_eq!(states, ["up", "up", "starting"]);
    tokio::time::advance(std::time::Duration::from_secs(10)).await;
    assert_eq!(all(&again), home);
}

#[tokio::test(start_paused = true)]
async fn who_was_answered_stays_even_where_it_is_crowded() {
    let replicas = replicas(&URLS, None);
    let (home, _open) = choose(&replicas, 7, None);
    let at = replicas.all().iter().find(|replica| replica.url == home).unwrap();
    let _crowd: Vec<_> = (0..20).map(|_| at.load.enter()).collect();
    assert_ne!(choose(&replicas, 7, None).0, home);
    assert_eq!(choose(&replicas, 7, Some(at)).0, home);
    at.answered(503);
    assert_ne!(choose(&replicas, 7, Some(at)).0, home);
}

#[tokio::test(start_paused = true)]
async fn states_of_one_model_at_several_addresses_are_one() {
    let replicas = replicas(&URLS, None);
    for (number, expected) in ["closed", "closed", "open"].into_iter().enumerate() {
        let model = replicas.all()[number].models.of("m");
        model.counts.sent.fetch_add(2, Ordering::Relaxed);
        while !model.breaker.bad(bridge::FailureClass::Server) {}
        for replica in replicas.all() {
            replica.models.of("m");
        }
        let models = replicas.models();
        assert_eq!((models.len(), models[0].1.breaker, models[0].1.sent), (1, expected, 2 * (number as u64 + 1)));
    }
}

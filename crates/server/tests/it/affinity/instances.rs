//! Several instances on one database: they agree where a conversation belongs without a word between them.

use testkit::Postgres;

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_instances_on_one_postgres_choose_the_same_replica() {
    let Some(postgres) = Postgres::start() else { return };
    let session = format!("backend: postgres, postgres: {{url: '{}'}}", postgres.url());
    let replicas = replicas(4).await;
    let all = urls(&replicas);
    let turned: Vec<String> = all.iter().rev().cloned().collect();
    let rigs = [serving(&all, &session).await, serving(&turned, &session).await];
    let mut used = BTreeSet::new();
    for way in WAYS {
        for number in 0..3 {
            let mut talk = Talk::new(way, number);
            for turn in 0..4 {
                talk.turn(&rigs[turn % 2]).await;
            }
            let places = heard(&replicas, &talk.words);
            assert_eq!(places.values().copied().collect::<Vec<_>>(), [4], "{}: {places:?}", talk.words);
            used.extend(places.into_keys());
        }
    }
    assert!(used.len() > 1);
}

//! What the file must endure.

use store::{MemoryLimits, SqliteOptions, Store};

use crate::model::random_trees;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_trees_in_memory() {
    let store = Store::memory(MemoryLimits::default()).unwrap();
    for seed in 0..4 {
        random_trees(&store, seed, 1_000).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_trees_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::sqlite(&folder.path().join("s.db"), &SqliteOptions::default()).unwrap();
    random_trees(&store, 100, 1_000).await;
}

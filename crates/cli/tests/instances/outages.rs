//! A database that crashes and comes back while responses are made: they wait for it, and lose nothing.

use std::time::Duration;

use serde_json::json;

use crate::streams::{Reader, rest};
use crate::world::{Kept, World, id_of, object, request, spawn};

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_restarts_breaks_no_response() {
    let Some(world) = World::new("outages", Kept::Postgres, "").await else { return };
    let mut readers = Vec::new();
    for number in 0..12 {
        let asked = request(&format!("o{number}"), "n=60 pause=40", json!({"background": true, "stream": true}));
        readers.push(spawn(Reader::new(world.any(number).stream(&asked).await).into_whole()));
    }
    tokio::time::sleep(Duration::from_millis(800)).await;
    world.database_down();
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.database_up();
    for (number, reader) in readers.into_iter().enumerate() {
        let whole = reader.await.unwrap();
        let response = whole.response();
        let id = id_of(&response);
        assert_eq!(response["status"], "completed", "{response}");
        assert_eq!(world.upstream.calls(&format!("o{number}")).len(), 1);
        for instance in &world.instances {
            assert_eq!(rest(instance, &id, None).await, whole);
            assert_eq!(object(&instance.get(&format!("/v1/responses/{id}")).await), response);
        }
    }
    println!("outages: 12 responses were made across a crash of the database, each whole");
}

//! Every endpoint with every kind of id, in every place that takes one: a foreign id gets exactly the answer of an id that
//! never was. The matrix is made from the table of routes, and a route that it does not know fails it. Then as many of its
//! cells again, at random, as were asked for, with ids written in other ways.

use http::Method;
use serde_json::{Value, json};
use server::Route;
use testkit::{Answer, Postgres};

use super::*;

/// One request.
struct Probe {
    method: Method,
    path: String,
    body: String,
}

/// An id, as it may be written in a path and in JSON.
struct Written {
    id: String,
    in_path: String,
    in_json: String,
}

impl Written {
    fn plain(id: &str) -> Self {
        Self { id: id.to_owned(), in_path: id.to_owned(), in_json: id.to_owned() }
    }

    /// Otherwise, but the same.
    fn escaped(id: &str) -> Self {
        let (first, rest) = (id.as_bytes()[0], &id[1..]);
        Self { id: id.to_owned(), in_path: format!("%{first:02x}{rest}"), in_json: format!("\\u{first:04x}{rest}") }
    }

    /// Not the same any more: nearly.
    fn changed(id: &str, change: u32) -> Self {
        let (start, last) = id.split_at(id.len() - 1);
        match change {
            0 => Self::plain(start),
            1 => Self::plain(&format!("{start}{last}{last}")),
            2 => Self::plain(&id.to_uppercase()),
            _ => Self { in_path: format!("{id}%20"), in_json: format!("{id} "), id: format!("{id} ") },
        }
    }
}

/// What the prober has of its own, to use together with what it has not.
struct Own {
    response: String,
    conversation: String,
    item: String,
}

/// Every way to name an id to a route.
fn probes(route: &Route, id: &Written, own: &Own) -> Vec<Probe> {
    let path =
        |path: &str| path.replace("{id}", &id.in_path).replace("{item_id}", &id.in_path).replace("{*id}", &id.in_path);
    let method: Method = route.method.parse().unwrap();
    let at = |path: String, body: &str| Probe { method: method.clone(), path, body: body.to_owned() };
    // Written into the text: an escape in it is the client's own.
    let with = |body: Value| at(path(route.path), &body.to_string().replace("HERE", &id.in_json));
    let reference = || json!([{"type": "item_reference", "id": "HERE"}]);
    match (route.method, route.path) {
        ("POST", "/v1/responses") => creations(&with),
        ("POST", "/v1/responses/compact" | "/v1/responses/input_tokens") => vec![
            with(json!({"model": "m", "input": "x", "previous_response_id": "HERE"})),
            with(json!({"model": "m", "input": reference()})),
            with(json!({"model": "m", "input": "x", "conversation": "HERE"})),
        ],
        ("GET", "/v1/responses/{id}") => {
            let queries =
                ["", "?stream=true", "?stream=true&starting_after=1", "?include[]=reasoning.encrypted_content"];
            queries.iter().map(|query| at(path(route.path) + query, "")).collect()
        }
        ("DELETE", "/v1/responses/{id}" | "/v1/conversations/{id}")
        | ("POST", "/v1/responses/{id}/cancel")
        | ("GET", "/v1/conversations/{id}" | "/v1/models/{*id}") => vec![at(path(route.path), "")],
        ("GET", "/v1/responses/{id}/input_items") => vec![
            at(path(route.path), ""),
            at(format!("{}?after={}&order=asc", path(route.path), id.in_path), ""),
            at(format!("{}?after={}", route.path.replace("{id}", &own.response), id.in_path), ""),
        ],
        ("POST", "/v1/conversations") => vec![with(json!({"items": reference()}))],
        ("POST", "/v1/conversations/{id}") => vec![with(json!({"metadata": {"a": "b"}}))],
        ("POST", "/v1/conversations/{id}/items") => vec![
            with(json!({"items": [{"role": "user", "content": "x"}]})),
            with(json!({"items": reference()})),
            Probe { path: route.path.replace("{id}", &own.conversation), ..with(json!({"items": reference()})) },
        ],
        ("GET", "/v1/conversations/{id}/items") => vec![
            at(path(route.path), ""),
            at(format!("{}?after={}&order=asc", path(route.path), id.in_path), ""),
            at(format!("{}?after={}", route.path.replace("{id}", &own.conversation), id.in_path), ""),
        ],
        ("GET" | "DELETE", "/v1/conversations/{id}/items/{item_id}") => vec![
            at(path(route.path), ""),
            at(path(&route.path.replace("{id}", &own.conversation)), ""),
            at(path(&route.path.replace("{item_id}", &own.item)), ""),
        ],
        ("POST", "/v1/alpha/search") => vec![with(json!({"id": "HERE", "commands": {"open": [{"ref_id": "HERE"}]}}))],
        // Over a socket: `sockets`. The others take no id, and show nothing that is anybody's.
        ("GET", "/v1/responses" | "/v1/models" | "/health" | "/ready" | "/metrics") => Vec::new(),
        (method, path) => panic!("{method} {path} is new: say how it is probed"),
    }
}

/// The ways to name an id in a request for a response.
fn creations(with: &dyn Fn(Value) -> Probe) -> Vec<Probe> {
    let approval = json!([{"type": "mcp_approval_response", "approval_request_id": "HERE", "approve": true}]);
    let named = [
        json!({"input": "x", "previous_response_id": "HERE"}),
        json!({"input": "x", "previous_response_id": "HERE", "store": false, "stream": true}),
        json!({"input": "x", "previous_response_id": "HERE", "background": true}),
        json!({"input": "x", "conversation": "HERE"}),
        json!({"input": "x", "conversation": {"id": "HERE"}, "store": false, "stream": true}),
        json!({"input": [{"type": "item_reference", "id": "HERE"}]}),
        json!({"input": [{"role": "user", "content": "x"}, {"type": "item_reference", "id": "HERE"}], "stream": true}),
        json!({"input": [{"id": "HERE"}], "store": false}),
        json!({"input": approval, "tools": [{"type": "mcp", "server_label": "a"}]}),
    ];
    named
        .into_iter()
        .map(|mut body| {
            body["model"] = json!("m");
            with(body)
        })
        .collect()
}

/// What a client can see of an answer, without what is each answer's own.
fn seen(answer: &Answer, id: &str) -> (u16, String, Vec<(String, String)>) {
    let body = String::from_utf8_lossy(&answer.body).replace(id, "ID");
    let own = ["x-request-id", "date"];
    let headers = answer.headers.iter().filter(|(name, _)| !own.contains(&name.as_str()));
    let mut headers: Vec<_> =
        headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
    headers.sort();
    (answer.status, body, headers)
}

/// Sends both, and compares all that can be seen.
async fn compare(world: &World, (theirs, nobodys): (&Written, &Written), probe: (Probe, Probe)) {
    let (foreign, absent) = probe;
    let Probe { method, path, body } = foreign;
    let answer = send(&world.rig, OTHER, method.clone(), &path, &body).await;
    let text = String::from_utf8_lossy(&answer.body);
    assert!(answer.status >= 400, "{method} {path} {body}: {} {text}", answer.status);
    assert!(!text.contains(SECRET), "{method} {path} {body}: {text}");
    let expected = send(&world.rig, OTHER, absent.method, &absent.path, &absent.body).await;
    assert_eq!(seen(&answer, &theirs.id), seen(&expected, &nobodys.id), "{method} {path} {body}");
}

async fn probed(session: &str, most: usize) {
    let world = World::new(session).await;
    let before = world.seen_by_the_owner().await;
    let asked = world.rig.upstream.requests().len();
    let (called, mut chance) = (world.mcp.calls().len(), Chance(0x9E37_79B9_7F4A_7C15));
    let item = json!({"items": [{"role": "user", "content": "mine", "id": "my-own-item"}]});
    let conversation = id(&post(&world.rig, OTHER, "/v1/conversations", &item).await.json());
    let response = id(&made(&world.rig, OTHER, json!({"input": "mine"})).await);
    let own = Own { response, conversation, item: "my-own-item".to_owned() };
    let ids = world.ids();
    let kinds: std::collections::BTreeSet<&str> = ids.iter().map(|id| &id[..id.find(['_', '-']).unwrap()]).collect();
    for kind in ["resp", "conv", "msg", "rs", "fc", "ctc", "mcp", "mcpl", "mcpr", "note"] {
        assert!(kinds.contains(kind), "the owner has no {kind}: {kinds:?}");
    }
    for id in &ids {
        assert!(is_told_from_an_unknown_one(&world, id, &own, &mut chance).await, "nobody could see {id}");
    }
    let mut count = 0;
    // Everything once, then anything.
    for id in &ids {
        let (theirs, nobodys) = (Written::plain(id), Written::plain(&unknown(id, &mut chance)));
        for route in server::ROUTES {
            let pairs = probes(route, &theirs, &own).into_iter().zip(probes(route, &nobodys, &own));
            for pair in pairs {
                compare(&world, (&theirs, &nobodys), pair).await;
                count += 2;
            }
        }
    }
    while count < most {
        let (id, route) = (chance.of(&ids).clone(), *chance.of(server::ROUTES));
        let never = unknown(&id, &mut chance);
        let how = chance.below(8);
        let written = |id: &str| match how {
            0..2 => Written::escaped(id),
            change @ 2..6 => Written::changed(id, change - 2),
            _ => Written::plain(id),
        };
        let (theirs, nobodys) = (written(&id), written(&never));
        let mut pairs: Vec<(Probe, Probe)> =
            probes(&route, &theirs, &own).into_iter().zip(probes(&route, &nobodys, &own)).collect();
        if !pairs.is_empty() {
            let one = pairs.swap_remove(chance.below(u32::try_from(pairs.len()).unwrap()) as usize);
            compare(&world, (&theirs, &nobodys), one).await;
            count += 2;
        }
    }
    // Nothing was touched, nobody was asked, and nothing was run.
    assert_eq!(world.seen_by_the_owner().await, before);
    let mine = world.rig.upstream.requests().len() - asked;
    assert_eq!((mine, world.mcp.calls().len()), (1, called), "the prober's one response");
    assert!(!world.rig.upstream.requests()[asked].json().to_string().contains(SECRET));
    let cancelled = send(&world.rig, OWNER, Method::POST, &format!("/v1/responses/{}/cancel", world.running), "").await;
    assert_eq!(cancelled.json()["status"], "cancelled", "nobody else has ended it");
}

/// Whether its owner, who asks in the same ways, gets another answer: or the comparison would find nothing. Only in ways
/// that change nothing.
async fn is_told_from_an_unknown_one(world: &World, id: &str, own: &Own, chance: &mut Chance) -> bool {
    let (theirs, nobodys) = (Written::plain(id), Written::plain(&unknown(id, chance)));
    let harmless = |route: &&Route| route.method == "GET" || route.path.ends_with("/input_tokens");
    for route in server::ROUTES.iter().filter(harmless) {
        let pairs = probes(route, &theirs, own).into_iter().zip(probes(route, &nobodys, own));
        // What runs would be followed to its end.
        for (mine, absent) in pairs.filter(|(mine, _)| !mine.path.contains("stream=true")) {
            let answer = send(&world.rig, OWNER, mine.method, &mine.path, &mine.body).await;
            let expected = send(&world.rig, OWNER, absent.method, &absent.path, &absent.body).await;
            if seen(&answer, &theirs.id) != seen(&expected, &nobodys.id) {
                return true;
            }
        }
    }
    false
}

/// How many requests: what is enough for every change, or for a release.
fn enough() -> usize {
    if std::env::var_os("GODEX_FULL").is_some() { 1_000_000 } else { 20_000 }
}

#[tokio::test]
async fn a_foreign_id_is_an_unknown_id() {
    let folder = tempfile::tempdir().unwrap();
    probed(&format!("sqlite: {{path: '{}'}}", folder.path().join("sessions.db").display()), enough()).await;
}

#[tokio::test]
async fn a_foreign_id_is_an_unknown_id_on_postgres() {
    let Some(postgres) = Postgres::start() else { return };
    probed(&format!("backend: postgres, postgres: {{url: '{}'}}", postgres.url()), enough()).await;
}

/// No header and no field of a body says who somebody is: only the key does.
#[tokio::test]
async fn nobody_says_who_he_is() {
    let world = World::new("backend: memory").await;
    let response = &world.responses[0];
    let names = [
        "tenant",
        "tenant_id",
        "owner",
        "user",
        "session",
        "store_tenant",
        "x_tenant",
        "organization",
        "project",
        "key",
    ];
    let bearer = format!("Bearer {OTHER}");
    for name in names {
        for value in ["owner", OWNER] {
            let mut body = json!({"model": "m", "input": "x", "previous_response_id": response});
            body[name] = json!(value);
            body["metadata"] = json!({name: value});
            let headers = [
                ("content-type", "application/json"),
                ("x-tenant-id", value),
                ("openai-organization", value),
                ("openai-project", value),
                ("cookie", value),
                ("authorization", &bearer),
            ];
            let url = world.rig.url("/v1/responses");
            let answer = world.rig.client.request(Method::POST, &url, &headers, body.to_string()).await;
            assert_eq!(answer.unwrap().status, 400, "{name}");
            let url = world.rig.url(&format!("/v1/responses/{response}?{name}={value}"));
            let answer = world.rig.client.request(Method::GET, &url, &headers, "").await.unwrap();
            assert_eq!(answer.status, 404, "{name}");
        }
    }
}

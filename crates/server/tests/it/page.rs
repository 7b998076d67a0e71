//! The operator's page: its files, its playground, and the port that `godex page` opens for one browser.

use http::Method;
use serde_json::{Value, json};
use server::admin::{ADMIN_ROUTES, AdminClient, PageDoor};
use server::config::{AdminConfig, AdminListen, Config, Secret};
use tempfile::TempDir;
use testkit::{Answer, Client, Script, Upstream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::chat;
use crate::rig::{self, Rig, Settings};

const TOKEN: &str = "the-token-of-the-operator";
const PLAYGROUND: &str = "/admin/playground/responses";

/// What the script of the page asks for.
const FOR_PAGE: [(&str, &str); 12] = [
    ("GET", "/"),
    ("GET", "/page/{file}"),
    ("GET", "/admin/status"),
    ("GET", "/admin/keys"),
    ("GET", "/admin/usage"),
    ("GET", "/admin/traces"),
    ("GET", "/admin/traces/{id}"),
    ("GET", "/admin/traces/{id}/chain"),
    ("GET", "/admin/traces/{id}/explain"),
    ("GET", "/admin/series"),
    ("GET", "/admin/providers"),
    ("POST", PLAYGROUND),
];

fn hello() -> Script {
    Script::sse(&[chat::text("Hello"), chat::stop()])
}

async fn on_a_port() -> Rig {
    let upstream = Upstream::start(hello()).await.unwrap();
    let mut config = rig::config(&upstream, &Settings::default());
    let listen = AdminListen::Tcp("127.0.0.1:0".to_owned());
    config.admin = AdminConfig { listen, token: Some(Secret::new(TOKEN.to_owned())) };
    Rig::serving(upstream, config).await.unwrap()
}

async fn on_a_socket() -> (Rig, Config, TempDir) {
    let upstream = Upstream::start(hello()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut config = rig::config(&upstream, &Settings::default());
    config.admin = AdminConfig { listen: AdminListen::Unix(folder.path().join("admin.sock")), token: None };
    (Rig::serving(upstream, config.clone()).await.unwrap(), config, folder)
}

async fn get(client: &Client, url: &str, headers: &[(&str, &str)]) -> Answer {
    client.request(Method::GET, url, headers, String::new()).await.unwrap()
}

#[tokio::test]
async fn the_files_need_no_token_and_may_do_little() {
    let rig = on_a_port().await;
    let base = format!("http://{}", rig.admin.clone().unwrap());
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/page/app.js", "text/javascript; charset=utf-8"),
        ("/page/style.css", "text/css; charset=utf-8"),
        ("/page/icon.svg", "image/svg+xml"),
    ] {
        let answer = get(&rig.client, &format!("{base}{path}"), &[]).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(kind)), "{path}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';") && !policy.contains("unsafe"), "{policy}");
        assert!(policy.ends_with("frame-ancestors 'none'"), "{policy}");
        for (name, value) in
            [("x-content-type-options", "nosniff"), ("referrer-policy", "no-referrer"), ("cache-control", "no-cache")]
        {
            assert_eq!(answer.header(name), Some(value), "{path}");
        }
        let tag = answer.header("etag").unwrap().to_owned();
        let again = get(&rig.client, &format!("{base}{path}"), &[("if-none-match", &tag)]).await;
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
    }
    // A link to it may be anywhere; what it is made of only it may load.
    let from_elsewhere = [("sec-fetch-site", "cross-site")];
    assert_eq!(get(&rig.client, &base, &from_elsewhere).await.status, 200);
    assert_eq!(get(&rig.client, &format!("{base}/page/app.js"), &from_elsewhere).await.status, 403);
    assert_eq!(get(&rig.client, &base, &[("host", "evil.example")]).await.status, 403);
    let bearer = format!("Bearer {TOKEN}");
    for (path, status) in [("/page/nothing.js", 404), ("/page/../Cargo.toml", 404), ("/page/", 404)] {
        let answer = get(&rig.client, &format!("{base}{path}"), &[("authorization", &bearer)]).await;
        assert_eq!(answer.status, status, "{path}");
    }
    // Nothing of what is answered beside them stays in a browser.
    let status = get(&rig.client, &format!("{base}/admin/status"), &[("authorization", &bearer)]).await;
    assert_eq!((status.status, status.header("cache-control")), (200, Some("no-store")));
    assert_eq!(get(&rig.client, &rig.url("/"), &[]).await.status, 404, "not where clients are");
}

#[tokio::test]
async fn the_playground_asks_as_a_client_does() {
    let (rig, config, _folder) = on_a_socket().await;
    let admin = AdminClient::running(&config).await.unwrap();
    // Once there are keys, clients need one; the operator does not.
    let made = admin.ask("POST", "/admin/keys", Some(&json!({"name": "a", "tenant": "other"}))).await.unwrap();
    assert_eq!(made.status, 200);
    let refused = rig.client.post_json(&rig.url("/v1/responses"), &json!({"model": "m", "input": "x"})).await.unwrap();
    assert_eq!(refused.status, 401);

    let ask = async |body: Value| admin.ask("POST", PLAYGROUND, Some(&body)).await.unwrap();
    let streamed = ask(json!({"model": "m", "input": "Hello", "stream": true})).await;
    let events = testkit::grammar::check(&streamed.body).unwrap().events;
    let response = &events.last().unwrap().1["response"];
    assert_eq!((streamed.status, &response["status"]), (200, &json!("completed")));
    // More than a request of the admin listener's own may have.
    let large =
        ask(json!({"model": "m", "input": "long ".repeat(40_000), "previous_response_id": response["id"]})).await;
    let object: Value = serde_json::from_slice(&large.body).unwrap();
    assert_eq!((large.status, &object["status"]), (200, &json!("completed")), "{object}");
    assert_eq!(rig.upstream.requests().len(), 2);

    for (body, status, code) in [
        (json!({"model": "m"}), 400, "missing_required_parameter"),
        (json!({"model": "m", "input": "x", "previous_response_id": "resp_none"}), 400, "previous_response_not_found"),
    ] {
        let answer = ask(body).await;
        let error: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!((answer.status, error["error"]["code"].as_str().unwrap_or_default()), (status, code), "{error}");
    }
    let elsewhere = rig.client.post_json(&rig.url(PLAYGROUND), &json!({"model": "m", "input": "x"})).await.unwrap();
    assert!(matches!(elsewhere.status, 401 | 404), "{}", elsewhere.status);
}

/// Where the session is and its cookie, out of what the link answers.
fn session(answer: &Answer) -> (String, String) {
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.ends_with("; HttpOnly; SameSite=Strict"), "{cookie}");
    let (pair, rest) = cookie.split_once("; Path=").unwrap();
    (rest.split(';').next().unwrap().to_owned(), pair.to_owned())
}

#[tokio::test]
async fn the_door_opens_once_and_for_one() {
    let (rig, config, _folder) = on_a_socket().await;
    let admin = AdminClient::started_with(&config).await.unwrap();
    let door = PageDoor::open(&admin, 0).await.unwrap();
    let link = door.link();
    let base = link.rsplit_once('/').unwrap().0.to_owned();
    let visitor = async {
        for path in ["/", "/page/app.js", "/admin/status", "/0123456789"] {
            assert_eq!(get(&rig.client, &format!("{base}{path}"), &[]).await.status, 403, "{path}");
        }
        // Looking ahead does not use it up; a name that was pointed here does not open it.
        assert_eq!(get(&rig.client, &link, &[("sec-purpose", "prefetch")]).await.status, 403);
        assert_eq!(get(&rig.client, &link, &[("host", "evil.example")]).await.status, 403);
        let opened = get(&rig.client, &link, &[("sec-fetch-site", "cross-site")]).await;
        assert_eq!(opened.status, 200);
        let (path, cookie) = session(&opened);
        let second = get(&rig.client, &link, &[]).await;
        assert_eq!((second.status, second.header("set-cookie")), (403, None));

        let home = format!("{base}{path}");
        let status = format!("{home}admin/status");
        let own = [("cookie", cookie.as_str())];
        let page = get(&rig.client, &home, &own).await;
        assert!(page.status == 200 && String::from_utf8_lossy(&page.body).contains("page/app.js"));
        assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
        assert_eq!(get(&rig.client, &status, &own).await.json()["name"], json!("godex"));
        for headers in [
            &[][..],
            &[("cookie", "godex_page=0123")],
            &[("cookie", &cookie), ("origin", "http://evil.example")],
            &[("cookie", &cookie), ("origin", "null")],
            &[("cookie", &cookie), ("sec-fetch-site", "same-site")],
            &[("cookie", &cookie), ("host", "evil.example")],
        ] {
            assert_eq!(get(&rig.client, &status, headers).await.status, 403, "{headers:?}");
        }
        assert_eq!(get(&rig.client, &format!("{base}/admin/status"), &own).await.status, 403, "without its path");
        // It only looks, and asks.
        let json = ("content-type", "application/json");
        let send = async |method, path: &str, body: Value| {
            let url = format!("{home}{path}");
            rig.client.request(method, &url, &[own[0], json, ("origin", &base)], body.to_string()).await.unwrap()
        };
        assert_eq!(send(Method::POST, "admin/drain", Value::Null).await.status, 403);
        assert_eq!(send(Method::POST, "admin/keys", json!({"name": "x"})).await.status, 403);
        assert_eq!(send(Method::DELETE, "admin/tenants/default", Value::Null).await.status, 403);
        let body = json!({"model": "m", "input": "Hello", "stream": true});
        let answer = send(Method::POST, "admin/playground/responses", body).await;
        assert_eq!(answer.header("content-type"), Some("text/event-stream; charset=utf-8"));
        assert_eq!(testkit::grammar::check(&answer.body).unwrap().events.last().unwrap().0, "response.completed");
        assert_eq!(get(&rig.client, &format!("{home}admin/nothing"), &own).await.status, 403);
        // Of all that the admin listener answers, only what the page's own script asks for.
        for route in ADMIN_ROUTES {
            let path = route.path.replace("{id}", "17").replace("{file}", "app.js").replace(['{', '}'], "");
            let method = Method::from_bytes(route.method.as_bytes()).unwrap();
            let answer = send(method, path.trim_start_matches('/'), Value::Null).await;
            let passes = FOR_PAGE.contains(&(route.method, route.path));
            assert_eq!(answer.status != 403, passes, "{} {}: {}", route.method, route.path, answer.status);
        }
    };
    tokio::select! {
        () = visitor => {}
        () = door.serve() => panic!("it ended"),
    }
    // Who is gone is told as such.
    drop(door);
    assert!(rig.client.request(Method::GET, &link, &[], String::new()).await.is_err());
}

#[tokio::test]
async fn those_who_say_nothing_keep_nobody_from_the_door() {
    const STRANGERS: usize = 400;
    let (rig, config, _folder) = on_a_socket().await;
    let admin = AdminClient::started_with(&config).await.unwrap();
    let door = PageDoor::open(&admin, 0).await.unwrap();
    let link = door.link();
    let address = link.strip_prefix("http://").and_then(|rest| rest.split('/').next()).unwrap().to_owned();
    let visitor = async {
        let mut strangers = Vec::new();
        for _ in 0..STRANGERS {
            strangers.push(tokio::net::TcpStream::connect(&address).await.unwrap());
        }
        assert_eq!(get(&rig.client, &link, &[]).await.status, 200);
        let (mut first, mut last) = (strangers.swap_remove(0), strangers.swap_remove(0));
        assert_eq!(first.read(&mut [0]).await.unwrap(), 0, "the first who came made room");
        assert!(last.write_all(b"GET / HTTP/1.1\r\n\r\n").await.is_ok());
        assert!(last.read(&mut [0]).await.unwrap() > 0, "the last who came is heard");
    };
    tokio::select! {
        () = visitor => {}
        () = door.serve() => panic!("it ended"),
    }
}

use super::*;

fn file(folder: &tempfile::TempDir) -> Settings {
    let session = format!("sqlite: {{path: '{}'}}", folder.path().join("sessions.db").display());
    Settings { session: format!("{session}, background: {{concurrency: 1, queue: 5}}"), ..Settings::default() }
}

/// A server that is stopped gives what runs an end, and what waits is run by the next one.
#[tokio::test]
async fn a_restart_leaves_nothing_unfinished() {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::with(stuck(), file(&folder)).await;
    let streamed = rig.client.post_stream(&rig.url("/v1/responses"), &request(true)).await.unwrap();
    let mut streamed = streamed;
    let read = streamed.read_until("\"delta\":\"Hel\"").await.unwrap();
    let (running, waiting) = (id_in(&read), submit(&rig).await);
    let reader = rig::spawn(async move {
        let mut rest = Vec::new();
        while let Some(more) = streamed.next().await.unwrap() {
            rest.extend_from_slice(&more);
        }
        rest
    });
    rig.stop_at_once().await;
    let rest = reader.await.unwrap();
    let rig = Rig::with(slow(Duration::ZERO), file(&folder)).await;
    let stopped = until(&rig, &format!("/v1/responses/{running}"), &["failed"]).await;
    assert_eq!(stopped["error"]["code"], "server_shutdown");
    assert_eq!(stopped["output"][0]["content"][0]["text"], "Hel");
    let again = rig.get(&format!("/v1/responses/{running}?stream=true")).await;
    assert_eq!(rig::stream(&again).response, stopped);
    assert_eq!(again.body, [read, rest].concat(), "its reader was told before the end");
    let done = until(&rig, &path(&waiting), &["completed"]).await;
    assert_eq!(done["output"][0]["content"][0]["text"], "Hello");
    assert_eq!(rig.upstream.requests().len(), 1);
}

/// Keys for tools are written nowhere, so another process cannot run what has them.
#[tokio::test]
async fn what_has_keys_waits_in_memory_only() {
    let folder = tempfile::tempdir().unwrap();
    let any_server = |config: &mut server::config::Config| config.tools.mcp.clients = server::config::McpClients::Open;
    let rig = Rig::with(stuck(), Settings { tweak: Some(any_server), ..file(&folder) }).await;
    submit(&rig).await;
    let mut body = request(false);
    body["tools"] = json!([{"type": "mcp", "server_label": "s", "server_url": "https://example.com", "authorization": "SECRET-KEY"}]);
    let waiting = rig::object_now(&rig.post(&body).await);
    assert_eq!(waiting["status"], "queued");
    rig.stop_at_once().await;
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(10).any(|window| window == b"SECRET-KEY"));
    }
    let rig = Rig::with(chat::answer(false), file(&folder)).await;
    let failed = until(&rig, &path(&waiting), &["failed"]).await;
    assert_eq!(failed["error"]["code"], "server_restarted");
    // Whoever watches hears of it.
    let samples =
        [r#"requests_total{route="background",status="0",outcome="failed""#, r#"{code="server_restarted"} 1"#];
    for _ in 0..500 {
        let metrics = String::from_utf8(rig.get("/metrics").await.body.into()).unwrap();
        if samples.iter().all(|sample| metrics.contains(sample)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("nobody counted it");
}

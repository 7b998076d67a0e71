//! The servers of one response, over real sockets and processes.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method};
use serde_json::{Value, json};
use testkit::mcp::{McpEra, McpOptions, STDIO};
use testkit::{McpServer, Script};
use wire::id::IdKind;
use wire::json::{FromRaw, Raw};

use super::*;
use crate::account::Account;
use crate::app::App;
use crate::caller::Caller;
use crate::client::Client;
use crate::clock;
use crate::config::{Config, Overrides, Sources, load};

const TOKEN: &str = "operator-token-0123456789";

fn config(servers: &str) -> Config {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("godex.yaml");
    std::fs::write(&path, format!("session: {{backend: memory}}\ntools: {{mcp: {{servers: {servers}}}}}\n")).unwrap();
    let overrides = Overrides { port: Some(0), ..Overrides::default() };
    let env = |name: &str| match name {
        "PATH" => Some("/usr/local/bin:/usr/bin:/bin".to_owned()),
        "GODEX_SECRET" => Some("not for processes".to_owned()),
        _ => None,
    };
    let sources = Sources { config_path: Some(&path), cwd: folder.path(), home: None, env: &env, overrides };
    load(&sources).unwrap_or_else(|problems| panic!("{problems}"))
}

async fn app(servers: &str) -> Arc<App> {
    Arc::new(App::new(config(servers)).await.unwrap())
}

fn at(server: &McpServer) -> String {
    format!("{{clock: {{url: '{}', headers: {{authorization: 'Bearer {TOKEN}'}}}}}}", server.url())
}

/// The shell's server: what it says is in a file, because YAML would have to quote it.
fn shell() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server.sh");
    std::fs::write(&path, STDIO).unwrap();
    let servers = format!("{{files: {{command: [sh, '{}'], env: {{KEY: {TOKEN}}}}}}}", path.display());
    (folder, servers)
}

fn of(app: &Arc<App>, tool: &Value) -> Result<McpServers, ApiError> {
    of_tenant(&Tenant::default(), app, tool)
}

fn of_tenant(tenant: &Tenant, app: &Arc<App>, tool: &Value) -> Result<McpServers, ApiError> {
    let mut ids = clock::ids();
    let id = ids.make(IdKind::Request);
    let headers = HeaderMap::new();
    let context = RequestContext {
        app: Arc::clone(app),
        snapshot: app.snapshot(),
        caller: Caller::earlier(tenant.clone(), None, Client::of(&headers)),
        account: Account::open(&Method::POST, "/v1/responses", &headers, &id),
        ids,
    };
    let text = tool.to_string();
    let tool = McpTool::from_raw(Raw::ours(&text)).unwrap();
    McpServers::of(&[(0, &tool)], &context)
}

async fn text(servers: &McpServers, label: &str, tool: &str) -> String {
    let output =
        tokio::time::timeout(Duration::from_secs(20), servers.call(label, tool, "{}")).await.expect("it hangs");
    match output.end {
        HostedEnd::Output(text) => {
            assert_eq!(text, output.text);
            text
        }
        HostedEnd::Failed { error } => format!("{error} | {}", output.text),
        end => panic!("{end:?}"),
    }
}

#[tokio::test]
async fn a_declared_server_is_listed_once_and_called_over_one_conversation() {
    for era in [McpEra::Modern, McpEra::Legacy] {
        let server = McpServer::start(McpOptions::new(era)).await.unwrap();
        let app = app(&at(&server)).await;
        let servers = of(&app, &json!({"server_label": "clock"})).unwrap();
        let (first, second) = tokio::join!(servers.list("clock"), servers.list("clock"));
        assert_eq!(first, second);
        let tools: Value = serde_json::from_str(&first.unwrap().tools).unwrap();
        assert_eq!(
            tools[0],
            json!({"name": "echo", "description": "Says it again.", "annotations": {"read_only": true},
                "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}})
        );
        let (one, two) =
            tokio::join!(servers.call("clock", "echo", r#"{"text":"1"}"#), servers.call("clock", "image", ""));
        assert_eq!((one.text.as_str(), one.images.len()), ("1", 0));
        assert_eq!((two.text.as_str(), two.images.len()), ("a pixel\n[image/png, 72 bytes]", 1));
        assert!(text(&servers, "clock", "headers").await.contains(&format!("Bearer {TOKEN}")));
        assert_eq!((server.count("tools/list"), server.count("server/discover")), (1, 1));
        drop(servers);
        if era == McpEra::Legacy {
            assert!(server.asked("DELETE", 1).await);
            assert_eq!(server.count("initialize"), 1);
        }
    }
}

#[tokio::test]
async fn a_list_is_asked_for_again_when_its_server_does_not_let_it_be_kept() {
    for (ttl_ms, lists) in [(0, 2), (60_000, 1)] {
        let server = McpServer::start(McpOptions { ttl_ms, ..McpOptions::new(McpEra::Modern) }).await.unwrap();
        let app = app(&at(&server)).await;
        for _ in 0..2 {
            of(&app, &json!({"server_label": "clock"})).unwrap().list("clock").await.unwrap();
        }
        assert_eq!(server.count("tools/list"), lists);
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_listed_says_why_and_nothing_secret() {
    let refuses = McpOptions { authorization: Some("Bearer another".to_owned()), ..McpOptions::new(McpEra::Modern) };
    let server = McpServer::start(refuses).await.unwrap();
    let app = app(&at(&server)).await;
    let not_listed = of(&app, &json!({"server_label": "clock"})).unwrap().list("clock").await.unwrap_err();
    assert!(not_listed.message.starts_with("Error retrieving tool list from MCP server: 'clock'. "), "{not_listed:?}");
    assert!(not_listed.message.contains("401") && !not_listed.optional, "{not_listed:?}");
    assert!(!format!("{not_listed:?}").contains(TOKEN), "{not_listed:?}");
    assert!(serde_json::from_str::<Value>(&not_listed.error).unwrap().is_string());
    // Nobody is there; the operator does not mind.
    let nobody = self::app("{gone: {url: 'http://127.0.0.1:9/mcp', optional: true}}").await;
    let not_listed = of(&nobody, &json!({"server_label": "gone"})).unwrap().list("gone").await.unwrap_err();
    assert!(not_listed.optional && not_listed.message.contains("cannot be reached"), "{not_listed:?}");
}

#[tokio::test]
async fn every_fault_of_a_call_is_for_the_model_to_read() {
    let server = McpServer::modern().await.unwrap();
    let app = app(&at(&server)).await;
    let servers = of(&app, &json!({"server_label": "clock"})).unwrap();
    for (tool, expected) in [
        (
            "fail",
            r#"{"type":"mcp_tool_execution_error","content":[{"type":"text","text":"it did not work"}]} | it did"#,
        ),
        ("rpc_error", r#"{"type":"mcp_protocol_error","code":-32602,"message":"Unknown tool"} | The server refused"#),
        ("status_401", r#"{"type":"http_error","code":401,"message":"Unauthorized: {\"error\":\"[redacted]\"}"} | "#),
        ("status_500", r#"{"type":"http_error","code":500,"message":"Internal Server Error: it fell over"} | "#),
        (
            "huge",
            r#"{"type":"http_error","code":502,"message":"The server's answer is larger than 8388608 bytes."} | "#,
        ),
        ("cut", r#"{"type":"http_error","code":502,"#),
        ("redirect_away", r#"{"type":"http_error","code":307,"#),
    ] {
        let found = text(&servers, "clock", tool).await;
        assert!(found.starts_with(expected) && !found.contains(TOKEN), "{tool}: {found}");
    }
    let before = server.count("tools/call");
    for (label, arguments) in [("clock", "[]"), ("clock", "{"), ("nobody", "{}")] {
        let output = servers.call(label, "echo", arguments).await;
        let HostedEnd::Failed { error } = output.end else { panic!("{output:?}") };
        assert!(error.contains("-32602"), "{error}");
    }
    assert_eq!(server.count("tools/call"), before);
}

#[tokio::test]
async fn what_is_not_allowed_is_not_called() {
    let server = McpServer::modern().await.unwrap();
    let app = app(&format!("{{clock: {{url: '{}', allowed_tools: [echo, write]}}}}", server.url())).await;
    let servers = of(&app, &json!({"server_label": "clock", "allowed_tools": ["echo", "fail"]})).unwrap();
    assert!(servers.allows("clock", "echo", None) && !servers.allows("nobody", "echo", None));
    for tool in ["write", "fail"] {
        assert!(!servers.allows("clock", tool, None));
        assert!(text(&servers, "clock", tool).await.contains("may not be called"));
    }
    assert!(servers.needs_approval("nobody", "echo", None));
    assert_eq!(server.methods(), Vec::<String>::new());
}

#[tokio::test]
async fn a_gone_client_closes_its_calls() {
    let server = McpServer::modern().await.unwrap();
    let app = app(&at(&server)).await;
    let servers = of(&app, &json!({"server_label": "clock"})).unwrap();
    let mut calling = servers.call("clock", "hang", "{}");
    tokio::select! {
        output = &mut calling => panic!("{output:?}"),
        asked = server.asked("tools/call", 1) => assert!(asked),
    }
    drop(calling);
    let index = server.methods().iter().position(|method| method == "tools/call").unwrap();
    tokio::time::timeout(Duration::from_secs(5), server.upstream().closed_after(index)).await.expect("it stays open");
}

#[tokio::test]
async fn a_server_that_never_begins_is_not_waited_for() {
    let silent = McpOptions { fault: Some(Script::silent()), ..McpOptions::new(McpEra::Modern) };
    let server = McpServer::start(silent).await.unwrap();
    let app = app(&at(&server)).await;
    let servers = of(&app, &json!({"server_label": "clock"})).unwrap();
    let listing = servers.list("clock");
    assert!(server.asked("server/discover", 0).await);
    let not_listed = tokio::time::timeout(Duration::from_secs(30), listing).await.expect("it hangs").unwrap_err();
    assert!(not_listed.message.contains("within 10 seconds"), "{not_listed:?}");
}

#[tokio::test]
async fn a_process_is_shared_sees_little_and_is_started_again() {
    let (_folder, servers) = shell();
    let app = app(&servers).await;
    let (one, two) = (of(&app, &json!({"server_label": "files"})), of(&app, &json!({"server_label": "files"})));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert!(one.list("files").await.unwrap().tools.contains(r#""name":"environment""#));
    let pid = text(&one, "files", "pid").await;
    assert_eq!(text(&two, "files", "pid").await, pid, "there is one process");
    let seen = text(&one, "files", "environment").await;
    assert!(seen.contains("PATH ") && seen.ends_with(&format!("KEY={TOKEN}")), "{seen}");
    assert!(!seen.contains("GODEX") && !seen.contains("CARGO"), "{seen}");
    // A call that is under way when it dies has failed; the next finds another process.
    assert!(text(&one, "files", "die").await.starts_with(r#"{"type":"http_error","code":502,"#));
    let next = text(&two, "files", "pid").await;
    assert!(next != pid && next.parse::<u32>().is_ok(), "{next}");
    // A new configuration with the same server leaves it alone, one without ends it.
    drop((one, two));
    app.swap(config(&servers)).unwrap();
    let same = of(&app, &json!({"server_label": "files"})).unwrap();
    assert_eq!(text(&same, "files", "pid").await, next);
    drop(same);
    app.swap(config("{}")).unwrap();
    assert!(ended(&next).await);
    assert!(of(&app, &json!({"server_label": "files"})).is_err());
}

/// What a process remembers is one tenant's; and one that nobody uses for long ends, unless it is the only tenant's.
#[tokio::test]
async fn no_two_tenants_share_a_process() {
    let (_folder, servers) = shell();
    let app = app(&servers).await;
    let tool = json!({"server_label": "files"});
    let tenants = ["default", "one", "two"].map(Tenant::new);
    let mut pids = Vec::new();
    for tenant in &tenants {
        let (first, second) = (of_tenant(tenant, &app, &tool).unwrap(), of_tenant(tenant, &app, &tool).unwrap());
        let pid = text(&first, "files", "pid").await;
        assert_eq!(text(&second, "files", "pid").await, pid);
        assert!(!pids.contains(&pid), "{pids:?} {pid}");
        pids.push(pid);
    }
    let used = of_tenant(&tenants[2], &app, &tool).unwrap();
    assert_eq!(text(&used, "files", "pid").await, pids[2]);
    tokio::time::pause();
    tokio::time::advance(Duration::from_mins(16)).await;
    app.runtime.tidy();
    tokio::time::resume();
    assert!(ended(&pids[1]).await, "nobody uses it");
    assert_eq!(text(&used, "files", "pid").await, pids[2], "somebody does");
    assert_eq!(text(&of(&app, &tool).unwrap(), "files", "pid").await, pids[0], "it stays");
    let next = text(&of_tenant(&tenants[1], &app, &tool).unwrap(), "files", "pid").await;
    assert!(!pids.contains(&next), "{pids:?} {next}");
}

/// However many tenants there are, only so many processes run; those in use stay.
#[tokio::test]
async fn a_flood_of_tenants_runs_only_so_many_processes() {
    let (_folder, servers) = shell();
    let app = app(&servers).await;
    let tool = json!({"server_label": "files"});
    let held = of_tenant(&Tenant::new("held"), &app, &tool).unwrap();
    let pid = text(&held, "files", "pid").await;
    let mut pids = Vec::new();
    for number in 0..140 {
        let one = of_tenant(&Tenant::new(&number.to_string()), &app, &tool).unwrap();
        pids.push(text(&one, "files", "pid").await);
    }
    assert!(ended(&pids[0]).await, "the one that was not used for longest");
    assert_eq!(text(&held, "files", "pid").await, pid);
    let runs = |pid: &String| {
        let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
        rustix::process::test_kill_process(pid).is_ok()
    };
    for _ in 0..200 {
        if pids.iter().filter(|pid| runs(pid)).count() < 128 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("too many run");
}

/// Whether the process ends soon.
async fn ended(pid: &str) -> bool {
    let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
    for _ in 0..200 {
        if rustix::process::test_kill_process(pid).is_err() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    false
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told() {
    let app = app("{files: {command: [no-such-program-anywhere]}}").await;
    let servers = of(&app, &json!({"server_label": "files"})).unwrap();
    let not_listed = servers.list("files").await.unwrap_err();
    assert!(not_listed.message.contains("does not start"), "{not_listed:?}");
}

#[tokio::test]
async fn a_process_that_dies_at_once_is_not_started_over_and_over() {
    let folder = tempfile::tempdir().unwrap();
    let counted = folder.path().join("count");
    let app = app(&format!("{{files: {{command: [sh, -c, 'echo x >> {}']}}}}", counted.display())).await;
    let mut refused = 0;
    for _ in 0..8 {
        let servers = of(&app, &json!({"server_label": "files"})).unwrap();
        let not_listed = servers.list("files").await.unwrap_err();
        refused += usize::from(not_listed.message.contains("several times"));
    }
    let starts = std::fs::read_to_string(&counted).unwrap().lines().count();
    assert!(starts + refused == 8 && refused >= 3, "{starts} starts, {refused} refused");
}

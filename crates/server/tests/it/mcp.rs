//! Declared MCP servers as `godex mcp` asks them.

use server::config::{Config, McpAddress, McpServerConfig, Secret};
use server::mcp;
use testkit::mcp::{McpEra, McpOptions, STDIO};
use testkit::{McpServer, Script, Upstream};

use crate::rig::{Settings, config};

fn declared(label: &str, at: McpAddress) -> McpServerConfig {
    McpServerConfig {
        label: label.to_owned(),
        at,
        allowed_tools: Some(vec!["echo".to_owned()]),
        require_approval: None,
        optional: false,
        client_headers: false,
        price_per_call: None,
    }
}

async fn with(servers: Vec<McpServerConfig>) -> Config {
    let mut config = config(&Upstream::start(Script::silent()).await.unwrap(), &Settings::default());
    config.tools.mcp.servers = servers;
    config
}

fn over_http(server: &McpServer, token: &str) -> McpAddress {
    let headers = vec![("authorization".to_owned(), Secret::new(format!("Bearer {token}")))];
    McpAddress::Url { url: server.url(), headers }
}

#[tokio::test]
async fn servers_of_both_eras_and_processes_are_checked_listed_and_called() {
    let options = |era| McpOptions { authorization: Some("Bearer good-token".to_owned()), ..McpOptions::new(era) };
    let modern = McpServer::start(options(McpEra::Modern)).await.unwrap();
    let legacy = McpServer::start(options(McpEra::Legacy)).await.unwrap();
    let command = ["sh", "-c", STDIO].map(str::to_owned).to_vec();
    let inherited = vec![("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())];
    let config = with(vec![
        declared("modern", over_http(&modern, "good-token")),
        declared("legacy", over_http(&legacy, "good-token")),
        declared("process", McpAddress::Command { command, env: Vec::new(), inherited }),
    ])
    .await;
    for (server, version) in config.tools.mcp.servers.iter().zip(["2026-07-28", "2025-11-25", "2025-11-25"]) {
        let checked = mcp::check(server).await.unwrap();
        assert_eq!(checked.version, version);
        assert!(checked.server.is_some());
        let tools = mcp::list(&config, &server.label).await.unwrap();
        assert_eq!(tools, checked.tools);
        assert_eq!((tools[0].name.as_str(), tools[0].allowed, tools[1].allowed), ("echo", true, false));
        let called = mcp::call(&config, &server.label, "echo", r#"{"text":"echo"}"#).await.unwrap();
        assert_eq!((called.text.as_str(), called.failed), ("echo", false));
    }
    let failed = mcp::call(&config, "modern", "fail", "{}").await.unwrap();
    assert_eq!((failed.text.as_str(), failed.failed), ("it did not work", true));
    assert!(mcp::call(&config, "modern", "echo", "[]").await.unwrap_err().contains("no JSON object"));
}

#[tokio::test]
async fn what_does_not_answer_is_told_without_secrets() {
    let options = McpOptions { authorization: Some("Bearer good-token".to_owned()), ..McpOptions::new(McpEra::Modern) };
    let server = McpServer::start(options).await.unwrap();
    let nobody = McpAddress::Url { url: "http://127.0.0.1:9/a-secret-path".to_owned(), headers: Vec::new() };
    let config = with(vec![declared("shut", over_http(&server, "wrong-token")), declared("gone", nobody)]).await;
    for (label, words) in [("shut", "401"), ("gone", "cannot be reached"), ("other", "declared: shut, gone")] {
        let error = mcp::list(&config, label).await.unwrap_err();
        assert!(error.contains(words) && !error.contains("wrong-token") && !error.contains("secret-path"), "{error}");
    }
}

//! Servers that speak over their standard streams.

use std::process::Stdio;

use mcp::{Client, Failure, Opening};
use serde_json::json;
use tokio::process::{Child, Command};

use crate::help::{call, soon};

async fn shell(script: &str) -> (Child, Result<Client, Failure>) {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let (read, write) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let client = soon(Client::over_streams(read, write, std::iter::empty(), Opening::Either)).await;
    (child, client)
}

#[tokio::test]
async fn a_process_lists_and_answers_and_its_end_ends_the_call() {
    let (mut child, client) = shell(testkit::mcp::STDIO).await;
    let client = client.unwrap();
    let names: Vec<String> = client.list().await.unwrap().tools.into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["echo", "environment", "die", "sleep", "pid"]);
    assert_eq!(call(&client, "echo", json!({})).await.unwrap().text, "echo");
    let failure = soon(call(&client, "die", json!({}))).await.unwrap_err();
    assert!(matches!(failure, Failure::Http { code: 502, .. }), "{failure:?}");
    assert_eq!(child.wait().await.unwrap().code(), Some(3));
    assert!(client.is_closed());
}

#[tokio::test]
async fn a_process_without_a_client_ends() {
    let (mut child, client) = shell(testkit::mcp::STDIO).await;
    drop(client.unwrap());
    assert!(soon(child.wait()).await.unwrap().success());
}

#[tokio::test]
async fn what_is_no_server_is_told() {
    let (_child, client) = shell("exit 1").await;
    assert!(matches!(client.unwrap_err(), Failure::Http { code: 502, .. }));
}

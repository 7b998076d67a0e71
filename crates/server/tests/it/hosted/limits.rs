//! What stops a model that calls and calls.

use serde_json::{Value, json};
use testkit::McpServer;

use super::{NEVER, asked, both, calls, kinds, mcp, model, request, rig, says};

fn tool_results(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap().iter();
    let tools = messages.filter(|message| message["role"] == "tool");
    tools.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn no_more_calls_are_made_than_the_client_wants() {
    let server = McpServer::modern().await.unwrap();
    let three: Vec<(&str, &str, Value)> =
        ["c1", "c2", "c3"].into_iter().map(|id| (id, "a__echo", json!({"text": id}))).collect();
    let rig = rig(model(vec![calls(&three), says("Done.")]).await, &[("a", &server, NEVER)]).await;
    let mut request = request(&json!([mcp("a")]));
    request["max_tool_calls"] = json!(1);
    let response = both(&rig, &request).await;
    assert_eq!(kinds(&response), ["mcp_list_tools", "mcp_call", "message"]);
    assert_eq!(server.calls().len(), 2, "one for each response");
    let last = &asked(&rig)[1];
    let results = tool_results(last);
    assert_eq!(results.len(), 3, "every call has a result");
    assert!(results[1..].iter().all(|result| result.contains("limit")), "{results:?}");
    assert_eq!((&last["tool_choice"], last["tools"] == asked(&rig)[0]["tools"]), (&json!("none"), true));
}

#[tokio::test]
async fn a_model_that_calls_for_ever_has_to_answer_in_the_end() {
    let server = McpServer::modern().await.unwrap();
    let mut messages: Vec<Value> = Vec::new();
    for round in 0..40 {
        let mut call = calls(&[("c", "a__echo", json!({"text": "again"}))]);
        call["tool_calls"][0]["id"] = json!(format!("c{round}"));
        messages.push(call);
    }
    let rig = rig(model(messages).await, &[("a", &server, NEVER)]).await;
    let response = both(&rig, &request(&json!([mcp("a")]))).await;
    assert_eq!(response["status"], "completed");
    let asked = asked(&rig);
    assert_eq!(asked.len(), 2 * 25);
    assert_eq!(asked[24]["tool_choice"], "none");
    assert_eq!(server.calls().len(), 2 * 24);
}

#[tokio::test]
async fn the_tokens_of_all_answers_count() {
    let server = McpServer::modern().await.unwrap();
    let used = |mut message: Value| {
        message["usage"] = json!({"prompt_tokens": 5, "completion_tokens": 20, "total_tokens": 25});
        message
    };
    let again = |id: &str| used(calls(&[(id, "a__echo", json!({"text": "x"}))]));
    for (most, rounds, status) in [(50, 3, "completed"), (40, 2, "incomplete"), (20, 1, "incomplete")] {
        let messages = vec![again("c1"), again("c2"), used(says("Done."))];
        let rig = rig(model(messages).await, &[("a", &server, NEVER)]).await;
        let mut request = request(&json!([mcp("a")]));
        request["max_output_tokens"] = json!(most);
        let response = both(&rig, &request).await;
        assert_eq!((response["status"].as_str(), asked(&rig).len()), (Some(status), 2 * rounds), "{most}");
        let sent: Vec<i64> = asked(&rig)[..rounds].iter().filter_map(|asked| asked["max_tokens"].as_i64()).collect();
        let left: Vec<i64> = (0..i64::try_from(rounds).unwrap()).map(|round| most - 20 * round).collect();
        assert_eq!(sent, left);
    }
}

#[tokio::test]
async fn calls_of_an_answer_that_was_cut_are_not_made() {
    let server = McpServer::modern().await.unwrap();
    let mut cut = calls(&[("c1", "a__echo", json!({"text": "x"}))]);
    cut["finish_reason"] = json!("length");
    let rig = rig(model(vec![cut, says("Never.")]).await, &[("a", &server, NEVER)]).await;
    let response = both(&rig, &request(&json!([mcp("a")]))).await;
    assert_eq!((response["status"].as_str(), server.calls().len()), (Some("incomplete"), 0));
    assert_eq!(kinds(&response), ["mcp_list_tools"]);
}

//! One response of several answers: what is shown, what the model is told, and what it cost.

use serde_json::json;
use testkit::McpServer;

use super::{NEVER, asked, both, calls, each_extends_the_last, kinds, mcp, model, request, rig, says};

#[tokio::test]
async fn a_server_is_listed_its_tools_run_and_the_model_goes_on() {
    for server in [McpServer::modern().await.unwrap(), McpServer::legacy().await.unwrap()] {
        let first = calls(&[("c1", "a__echo", json!({"text": "one"})), ("c2", "a__echo", json!({"text": "two"}))]);
        let upstream = model(vec![first, calls(&[("c3", "a__echo", json!({"text": "three"}))]), says("Done.")]).await;
        let rig = rig(upstream, &[("a", &server, NEVER)]).await;
        let response = both(&rig, &request(&json!([mcp("a")]))).await;
        assert_eq!(kinds(&response), ["mcp_list_tools", "mcp_call", "mcp_call", "mcp_call", "message"]);
        let outputs: Vec<&str> = (1..4).map(|at| response["output"][at]["output"].as_str().unwrap()).collect();
        assert!(outputs.iter().zip(["one", "two", "three"]).all(|(output, text)| output.contains(text)), "{outputs:?}");
        assert_eq!(response["output"][1]["name"], "echo");
        assert_eq!(response["output"][1]["server_label"], "a");
        assert_eq!(response["usage"]["total_tokens"], 21);
        assert_eq!(server.count("tools/list"), 2, "once for each response");
        let asked = asked(&rig);
        assert_eq!(asked.len(), 6);
        asked.chunks(3).for_each(each_extends_the_last);
        let results: Vec<&serde_json::Value> =
            asked[2]["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool").collect();
        let ids: Vec<&str> = results.iter().map(|result| result["tool_call_id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["c1", "c2", "c3"], "the model's own ids");
    }
}

#[tokio::test]
async fn tools_that_are_offered_and_not_called_change_nothing_else() {
    let server = McpServer::modern().await.unwrap();
    let rig = rig(model(vec![says("Hi.")]).await, &[("a", &server, NEVER)]).await;
    let response = both(&rig, &request(&json!([mcp("a")]))).await;
    assert_eq!(kinds(&response), ["mcp_list_tools", "message"]);
    assert!(server.calls().is_empty());
}

#[tokio::test]
async fn two_servers_with_the_same_names_are_two() {
    let (one, two) = (McpServer::modern().await.unwrap(), McpServer::legacy().await.unwrap());
    let both_called = calls(&[("c1", "a__echo", json!({"text": "x"})), ("c2", "b__echo", json!({"text": "y"}))]);
    let rig = rig(model(vec![both_called, says("Done.")]).await, &[("a", &one, NEVER), ("b", &two, NEVER)]).await;
    let response = both(&rig, &request(&json!([mcp("a"), mcp("b")]))).await;
    assert_eq!(kinds(&response), ["mcp_list_tools", "mcp_list_tools", "mcp_call", "mcp_call", "message"]);
    assert_eq!(one.calls()[0].1, json!({"text": "x"}));
    assert_eq!(two.calls()[0].1, json!({"text": "y"}));
}

#[tokio::test]
async fn the_clients_own_calls_keep_their_place_and_end_the_response() {
    let server = McpServer::modern().await.unwrap();
    let function = json!({"type": "function", "name": "mine", "parameters": {"type": "object", "properties": {}}});
    for order in [["mine", "a__echo", "mine"], ["a__echo", "mine", "a__echo"]] {
        let list: Vec<(&str, &str, serde_json::Value)> =
            ["c1", "c2", "c3"].into_iter().zip(order).map(|(id, name)| (id, name, json!({"text": id}))).collect();
        let rig = rig(model(vec![calls(&list), says("Done.")]).await, &[("a", &server, NEVER)]).await;
        let response = both(&rig, &request(&json!([mcp("a"), function.clone()]))).await;
        let kind = |name: &str| if name == "mine" { "function_call" } else { "mcp_call" };
        let expected: Vec<&str> = std::iter::once("mcp_list_tools").chain(order.map(kind)).collect();
        assert_eq!(kinds(&response), expected);
        assert_eq!(asked(&rig).len(), 2, "the client acts first");
        // The client's outputs continue it: one message with all the calls, and a result for each.
        let outputs: Vec<serde_json::Value> = list
            .iter()
            .filter(|(_, name, _)| *name == "mine")
            .map(|(id, ..)| json!({"type": "function_call_output", "call_id": id, "output": "mine"}))
            .collect();
        let next = json!({"model": "up/m", "input": outputs, "tools": [mcp("a"), function.clone()],
            "previous_response_id": response["id"]});
        let next = both(&rig, &next).await;
        assert_eq!(kinds(&next), ["message"], "it is listed already");
        let messages = asked(&rig)[2]["messages"].clone();
        let roles: Vec<&str> =
            messages.as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["user", "assistant", "tool", "tool", "tool"], "{messages}");
    }
}

#[tokio::test]
async fn a_demanded_call_is_demanded_once() {
    let server = McpServer::modern().await.unwrap();
    for choice in [json!("required"), json!({"type": "mcp", "server_label": "a"}), json!({"type": "mcp"})] {
        let upstream = model(vec![calls(&[("c1", "a__echo", json!({"text": "x"}))]), says("Done.")]).await;
        let rig = rig(upstream, &[("a", &server, NEVER)]).await;
        let mut request = request(&json!([mcp("a")]));
        request["tool_choice"] = choice;
        let (whole, streamed) = rig.both(&request).await;
        assert_eq!((whole.status, streamed.status), (200, 200), "{request}");
        let choices: Vec<serde_json::Value> = asked(&rig).iter().map(|asked| asked["tool_choice"].clone()).collect();
        assert_eq!(choices[..2], [json!("required"), json!(null)], "{request}");
    }
}

/// Whatever a model makes up beside the tools of a server is answered here: no client could.
#[tokio::test]
async fn a_tool_that_was_not_offered_is_told_to_the_model() {
    let server = McpServer::modern().await.unwrap();
    let function = json!({"type": "function", "name": "mine", "parameters": {"type": "object", "properties": {}}});
    for (name, tools) in [
        ("a__nope", json!([mcp("a")])),
        ("nope", json!([mcp("a")])),
        ("a__nope", json!([mcp("a"), function])),
        ("a__write", json!([{"type": "mcp", "server_label": "a", "allowed_tools": ["echo"]}, function])),
    ] {
        let upstream = model(vec![calls(&[("c1", name, json!({}))]), says("Done.")]).await;
        let rig = rig(upstream, &[("a", &server, NEVER)]).await;
        let response = both(&rig, &request(&tools)).await;
        assert_eq!(kinds(&response), ["mcp_list_tools", "message"], "{name}");
        let told = asked(&rig)[1]["messages"][2]["content"].as_str().unwrap().to_owned();
        assert!(told.contains("There is no tool"), "{name}: {told}");
    }
    assert!(server.calls().is_empty());
}

/// What the operator does not let be called is not even shown.
#[tokio::test]
async fn a_server_shows_the_tools_that_the_operator_allows() {
    let server = McpServer::modern().await.unwrap();
    let rig = rig(model(vec![says("Hi.")]).await, &[("a", &server, ", allowed_tools: [echo, fail]")]).await;
    let response = both(&rig, &request(&json!([mcp("a")]))).await;
    let names = |list: &serde_json::Value, at: &str| -> Vec<String> {
        list.as_array().unwrap().iter().map(|tool| tool.pointer(at).unwrap().as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&response["output"][0]["tools"], "/name"), ["echo", "fail"]);
    assert_eq!(names(&asked(&rig)[0]["tools"], "/function/name"), ["a__echo", "a__fail"]);
}

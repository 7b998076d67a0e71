//! A streamed response, read as a whole: for commands that try one.

use serde_json::Value;
use server::peer::PeerAnswer;

/// A response that was completed.
#[derive(Debug, Default)]
pub(super) struct Completed {
    pub(super) items: Vec<Value>,
    /// As its last event has it.
    pub(super) response: Value,
}

/// # Errors
/// It was refused, failed or broke off: why, in a sentence.
pub(super) fn read(answer: &PeerAnswer) -> Result<Completed, String> {
    let text = String::from_utf8_lossy(&answer.body);
    if answer.status != 200 {
        let error: Value = serde_json::from_str(&text).unwrap_or_default();
        let message = error["error"]["message"].as_str().unwrap_or("no reason was given");
        return Err(format!("{}: {message}", answer.status));
    }
    let mut items = Vec::new();
    let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data:")?).ok());
    for mut event in events {
        match event["type"].as_str() {
            Some("response.output_item.done") => items.push(event["item"].take()),
            Some("response.completed") => return Ok(Completed { items, response: event["response"].take() }),
            Some("response.failed" | "response.incomplete") => {
                let response = &event["response"];
                let reason =
                    response["error"]["message"].as_str().or(response["incomplete_details"]["reason"].as_str());
                return Err(reason.unwrap_or("the response failed").to_owned());
            }
            _ => {}
        }
    }
    Err("the stream ended before its last event".to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_stream_counts_when_it_ended_well() {
        let answer = |status, body: &str| PeerAnswer {
            status,
            headers: http::HeaderMap::new(),
            body: body.as_bytes().to_vec(),
            first: Duration::ZERO,
        };
        let done = "event: x\ndata: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"message\"}}\n\n";
        let whole = format!("{done}data: {{\"type\":\"response.completed\",\"response\":{{\"id\":\"r\"}}}}\n\n");
        let completed = read(&answer(200, &whole)).unwrap();
        assert_eq!((completed.items, completed.response), (vec![json!({"type": "message"})], json!({"id": "r"})));
        for (status, body, expected) in [
            (200, done, "the stream ended before"),
            (200, "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"message\":\"oops\"}}}\n", "oops"),
            (404, "{\"error\":{\"message\":\"no such model\"}}", "404: no such model"),
            (502, "<html>", "502: no reason"),
        ] {
            assert!(read(&answer(status, body)).unwrap_err().starts_with(expected), "{body}");
        }
    }
}

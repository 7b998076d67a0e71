//! Work grows with the request, not faster. Counted in allocations, which are the same on every machine; the
//! time itself is for the benchmark.

use bridge::{Dialect, PlanTarget, Policy, Unsealed};
use serde_json::{Value, json};
use wire::json::{FromRaw, Raw};
use wire::responses::CreateResponse;

/// Allocations and bytes of one plan.
fn cost(request: &Value) -> (u64, u64) {
    let text = request.to_string();
    let request = CreateResponse::from_raw(Raw::parse(&text).unwrap()).unwrap();
    let dialect = Dialect::default();
    let policy = Policy { strict: false, repair_history: true };
    let target = PlanTarget {
        model: "m",
        dialect: &dialect,
        policy,
        seal: &Unsealed,
        images: None,
        files: None,
        cache_key: None,
        hosting: bridge::Hosting::default(),
    };
    let counted = allocation_counter::measure(|| {
        assert!(bridge::plan(&request, &[], target).is_ok());
    });
    (counted.count_total, counted.bytes_total)
}

fn history(rounds: usize) -> Value {
    let tools: Vec<Value> = (0..120)
        .map(|i| json!({"type": "function", "name": format!("tool_{i}"), "parameters": {"type": "object", "properties": {}}}))
        .collect();
    let mut items = Vec::new();
    for round in 0..rounds {
        let id = format!("call_{round:08}");
        items.push(json!({"role": "user", "content": [{"type": "input_text", "text": "Go \"on\"."}]}));
        items.push(json!({"type": "function_call", "call_id": id, "name": "tool_7", "arguments": "{\"cmd\":\"ls\"}"}));
        items.push(json!({"type": "function_call_output", "call_id": id, "output": "line\n".repeat(800)}));
    }
    json!({"model": "m", "input": items, "tools": tools})
}

#[test]
fn twice_the_history_costs_twice() {
    let ((count, bytes), (twice_count, twice_bytes)) = (cost(&history(500)), cost(&history(1000)));
    assert!(twice_count <= count * 22 / 10, "{twice_count} allocations after {count}");
    assert!(twice_bytes <= bytes * 22 / 10, "{twice_bytes} bytes after {bytes}");
    assert!(count < 500 * 16, "{count} allocations for 1500 items");
}

/// Shapes that make careless lookups quadratic; each is large enough that one of those would not end.
#[test]
fn nasty_shapes_end() {
    const MANY: usize = 30_000;
    let same_call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"});
    let same_output = json!({"type": "function_call_output", "call_id": "c", "output": ""});
    let custom = json!({"type": "custom_tool_call", "call_id": "c", "name": "f", "input": ""});
    let chain = json!({"type": "custom_tool_call_output", "call_id": "c", "output": ""});
    let requests = [
        json!({"model": "m", "input": vec![same_call.clone(); MANY]}),
        json!({"model": "m", "input": vec![same_output.clone(); MANY]}),
        json!({"model": "m", "input": ([vec![same_call; MANY], vec![same_output; MANY]].concat())}),
        json!({"model": "m", "input": ([vec![custom], vec![chain; MANY]].concat())}),
        json!({"model": "m", "input": vec![json!({"type": "reasoning", "content": [{"type": "reasoning_text", "text": "t"}]}); MANY]}),
        json!({"model": "m", "input": "x", "tools": (0..MANY).map(|i| json!({"type": "namespace", "name": format!("n{i}"), "tools": [{"type": "function", "name": "f"}]})).collect::<Vec<_>>()}),
        json!({"model": "m", "input": "x", "tools": (0..MANY).map(|i| json!({"type": "function", "name": format!("f{}", "/".repeat(i % 3))})).collect::<Vec<_>>()}),
        json!({"model": "m", "input": "x", "tools": vec![json!({"type": "function", "name": "f"}); MANY],
            "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": vec![json!({"type": "function", "name": "f"}); MANY]}}),
    ];
    for request in requests {
        cost(&request);
    }
}

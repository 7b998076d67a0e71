//! Laws under property testing.

use bridge::{End, Framing};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::run::{bytes, chunks, object};

/// A chunk that some upstream might send, sane or not.
fn chunk() -> impl Strategy<Value = String> {
    let text = prop_oneof![Just("a".to_owned()), Just("é\n\"😀".to_owned()), Just(String::new()), ".{0,8}"];
    let call = (prop::option::of(0_i64..3), prop::option::of("(c1|c2|c3|)"), prop::option::of("(f|g|)"), "[{}\"a:1]{0,4}")
        .prop_map(|(index, id, name, arguments)| {
            json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}})
        });
    let delta = prop_oneof![
        4 => text.clone().prop_map(|text| json!({"content": text})),
        2 => text.clone().prop_map(|text| json!({"reasoning_content": text})),
        1 => text.clone().prop_map(|text| json!({"reasoning": text, "content": null})),
        1 => text.clone().prop_map(|text| json!({"refusal": text})),
        3 => prop::collection::vec(call, 0..3).prop_map(|calls| json!({"tool_calls": calls})),
        1 => text.prop_map(|text| json!({"content": [{"type": "text", "text": text}, 5]})),
        1 => Just(json!({"role": "assistant", "content": 7, "tool_calls": "x"})),
        1 => Just(json!(null)),
    ];
    let reason = prop_oneof![
        8 => Just(json!(null)),
        1 => prop::sample::select(vec!["stop", "length", "tool_calls", "content_filter", "abort", "??", ""]).prop_map(Value::from),
        1 => Just(json!(3)),
    ];
    prop_oneof![
        12 => (delta, reason).prop_map(|(delta, reason)| {
            json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}).to_string()
        }),
        1 => Just(json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}).to_string()),
        1 => Just(json!({"choices": null, "usage": null}).to_string()),
        1 => Just("[DONE]".to_owned()),
        1 => prop::sample::select(vec!["{}", "[]", "nonsense", "{\"error\":\"x\"}", "{\"choices\":{}}", ""]).prop_map(str::to_owned),
    ]
}

fn ends() -> impl Strategy<Value = End> {
    use bridge::{Failure, FailureClass};
    prop_oneof![
        Just(End::Done),
        Just(End::Eof),
        Just(End::Failed(Failure::new(FailureClass::Truncated, "cut"))),
        Just(End::Failed(Failure::new(FailureClass::Timeout, "late"))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn any_chunks_give_a_lawful_stream(given in prop::collection::vec(chunk(), 0..16), end in ends()) {
        let out = chunks(Framing::Sse, &given, end.clone());
        let stream = testkit::grammar::check(&out).map_err(TestCaseError::fail)?;
        // Not streamed: the same object.
        prop_assert_eq!(object(&chunks(Framing::Silent, &given, end)), stream.response);
    }

    #[test]
    fn any_split_of_the_bytes_gives_the_same_answer(
        given in prop::collection::vec(chunk(), 0..8),
        cuts in prop::collection::vec(0_usize..4000, 0..12),
    ) {
        let framed: Vec<String> = given.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
        let framed = framed.concat();
        let body = framed.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(body.len())).collect();
        cuts.extend([0, body.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &body[pair[0]..pair[1]]).collect();
        prop_assert_eq!(bytes(&pieces), bytes(&[body]));
    }
}

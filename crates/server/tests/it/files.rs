//! Files for a model that takes none, and a program that reads them in place of godex itself; with none, the client is told.

use serde_json::{Value, json};
use testkit::Script;

use crate::chat;
use crate::rig::{Rig, object};

const PDF: &str = "data:application/pdf;base64,JVBERi0xLjcK";

fn asking(parts: &[Value]) -> Value {
    json!({"model": "m", "input": [{"type": "message", "role": "user", "content": parts}]})
}

#[tokio::test]
async fn without_a_reader_a_pdf_is_left_out_and_text_is_not() {
    let script: Script = chat::answer(false);
    let rig = Rig::start(script).await;
    let parts = [
        json!({"type": "input_file", "filename": "a.pdf", "file_data": PDF}),
        json!({"type": "input_file", "filename": "Dockerfile", "file_data": "RlJPTSBzY3JhdGNo"}),
    ];
    let answer = rig.post(&asking(&parts)).await;
    object(&answer);
    let notes = answer.header("x-godex-compat").unwrap_or_default();
    assert!(notes.starts_with("input[0].content[0]=degraded"), "{notes}");
    assert_eq!(
        rig.upstream.requests()[0].json()["messages"][0]["content"],
        "[a.pdf: PDF omitted: this server was built without the reading of PDFs]\n[Dockerfile]\nFROM scratch"
    );
}

//! `session.encryption` and `godex store rekey`: the binary, from clear to encrypted to another key and back.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::json;

use crate::cli::{godex, home, run};
use crate::sessions::Godex;

const ONE: &str = "1111111111111111111111111111111111111111111111111111111111111111";
const TWO: &str = "2222222222222222222222222222222222222222222222222222222222222222";

fn configure(home: &Path, encryption: &str) {
    let text = format!(
        "session: {{sqlite: {{path: data/s.db}}, encryption: {{{encryption}}}}}\nmodels: {{discover: off}}\n\
         trace: {{capture_payload: true}}\n"
    );
    fs::write(home.join("godex.yaml"), text).unwrap();
}

/// Whether words that were said are to be read in any of its files.
fn to_be_read(home: &Path) -> bool {
    let files = fs::read_dir(home.join("data")).unwrap().map(|file| fs::read(file.unwrap().path()).unwrap());
    files.into_iter().any(|bytes| bytes.windows(6).any(|words| words == b"CANARY"))
}

async fn is_there(home: &Path, id: &str) {
    let running = Godex::logging_to(home, std::process::Stdio::null());
    let (status, response) = running.get(&format!("/v1/responses/{id}/input_items")).await;
    assert_eq!(status, 200, "{response}");
    assert!(response.to_string().contains("CANARY"), "{response}");
    assert!(running.end(Signal::TERM).success());
    // Its trace, too.
    let trace = run(home, &["traces", "show", id, "--json"]);
    assert!(trace.contains("CANARY"), "{trace}");
}

#[tokio::test]
async fn sessions_are_encrypted_rekeyed_and_decrypted() {
    let home = home("");
    let home = home.path();
    configure(home, "");
    let running = Godex::logging_to(home, std::process::Stdio::null());
    let body = json!({"model": "demo", "input": "say CANARY"});
    let answer = running.client.post_json(&format!("{}/v1/responses", running.url), &body).await.unwrap();
    let id = answer.json()["id"].as_str().unwrap().to_owned();
    let key = format!("key: '{ONE}'");
    configure(home, &key);
    let (code, _, err) = godex(home, &["store", "rekey"]);
    assert!(code == Some(1) && err.contains("is used by another process"), "{code:?} {err}");
    assert!(running.end(Signal::TERM).success());
    assert!(to_be_read(home));

    let (code, out, err) = godex(home, &["store", "rekey"]);
    assert!(code == Some(0) && out.starts_with("encrypted: "), "{code:?} {out} {err}");
    assert!(!to_be_read(home));
    is_there(home, &id).await;
    assert!(!to_be_read(home));
    for (encryption, expected) in [("", "has no key"), (&*format!("key: '{TWO}'"), "another key")] {
        configure(home, encryption);
        let (code, _, err) = godex(home, &["--port", "0"]);
        assert!(code == Some(1) && err.contains(expected), "{code:?} {err}");
    }
    let (_, out, _) = godex(home, &["config", "print"]);
    assert!(out.contains("encryption") && !out.contains("2222"), "{out}");

    let file = home.join("key");
    fs::write(&file, format!("{TWO}\n")).unwrap();
    let rotating = format!("key_file: key, previous_keys: ['{ONE}']");
    configure(home, &rotating);
    set_mode(&file, 0o644);
    let (code, _, err) = godex(home, &["store", "rekey"]);
    assert!(code == Some(1) && err.contains("everybody on this machine can read the file"), "{code:?} {err}");
    set_mode(&file, 0o600);
    let (code, out, err) = godex(home, &["store", "rekey"]);
    assert!(code == Some(0) && out.starts_with("encrypted: "), "{code:?} {out} {err}");
    configure(home, "key_file: key");
    is_there(home, &id).await;
    let (code, out, err) = godex(home, &["store", "rekey", "--decrypt"]);
    assert!(code == Some(0) && out.starts_with("decrypted: "), "{code:?} {out} {err}");
    configure(home, "");
    is_there(home, &id).await;
    let (code, _, err) = godex(home, &["store", "rekey"]);
    assert!(code == Some(1) && err.contains("no `session.encryption.key`"), "{code:?} {err}");
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

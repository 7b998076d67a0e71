//! Tokens that a command prints: fetched once, renewed when they are refused, never shown.

use std::path::Path;

use serde_json::{Value, json};
use testkit::{Received, Script, Upstream};

use crate::chat;
use crate::rig::{QUICK, Rig, error, object, parse};

fn asked() -> Value {
    json!({"model": "m", "input": "Hello"})
}

/// What the command prints the first time, the second, …
fn token(run: usize) -> String {
    format!("tok-canary-0123456789-{run}")
}

/// A command that counts its runs and prints another token each time, or does what else is said.
struct Printer {
    folder: tempfile::TempDir,
}

impl Printer {
    fn new(then: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("count");
        let script = format!(
            "n=$(cat '{0}' 2>/dev/null || echo 0); n=$((n+1)); echo $n > '{0}'\nprintf ' tok-canary-0123456789-%s \\n' $n\n{then}\n",
            count.display()
        );
        std::fs::write(folder.path().join("token.sh"), script).unwrap();
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn runs(&self) -> usize {
        let count = std::fs::read_to_string(self.path().join("count")).unwrap_or_default();
        count.trim().parse().unwrap_or_default()
    }

    /// A server whose provider's tokens are from this command.
    async fn rig(&self, upstream: Upstream) -> Rig {
        let command = format!("[sh, '{}']", self.path().join("token.sh").display());
        let text = format!(
            "session: {{backend: memory}}\nresilience: {{{QUICK}}}\nproviders:\n  up:\n    spec:\n      endpoint: {{base_url: '{}/v1'}}\n      \
             auth: {{command: {command}, ttl: 45m}}\n",
            upstream.url()
        );
        Rig::serving(upstream, parse(&text)).await.unwrap()
    }
}

/// Takes all tokens but those of these runs.
async fn refusing(runs: &'static [usize]) -> Upstream {
    let choose = move |request: &Received| {
        let shown = request.header("authorization").unwrap_or_default().to_owned();
        if runs.iter().any(|run| shown == format!("Bearer {}", token(*run))) {
            let message = format!("the token {shown} has expired");
            return Script::json(401, &json!({"error": {"message": message}}));
        }
        chat::answer(request.json()["stream"] == json!(true))
    };
    Upstream::start_with(choose).await.unwrap()
}

fn shown(rig: &Rig) -> Vec<String> {
    let header = |request: &Received| request.header("authorization").unwrap_or_default().to_owned();
    rig.upstream.requests().iter().map(header).collect()
}

fn bearer(run: usize) -> String {
    format!("Bearer {}", token(run))
}

#[tokio::test]
async fn a_token_is_fetched_once_also_for_many_at_the_same_time() {
    let printer = Printer::new("");
    let rig = printer.rig(refusing(&[]).await).await;
    let body = asked();
    let all = futures_util::future::join_all((0..8).map(|_| rig.post(&body))).await;
    for answer in &all {
        object(answer);
    }
    object(&rig.post(&asked()).await);
    assert_eq!((shown(&rig), printer.runs()), (vec![bearer(1); 9], 1));
}

#[tokio::test]
async fn a_token_that_is_refused_is_renewed_once() {
    let printer = Printer::new("");
    let rig = printer.rig(refusing(&[1]).await).await;
    object(&rig.post(&asked()).await);
    object(&rig.post(&asked()).await);
    assert_eq!((shown(&rig), printer.runs()), (vec![bearer(1), bearer(2), bearer(2)], 2));
}

#[tokio::test]
async fn a_token_that_is_refused_again_is_told_and_not_shown() {
    let printer = Printer::new("");
    let rig = printer.rig(refusing(&[1, 2, 3]).await).await;
    let answer = rig.post(&asked()).await;
    assert_eq!(error(&answer).domain, "provider_auth");
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(text.contains("[redacted]") && !text.contains("canary"), "{text}");
    assert_eq!((shown(&rig), printer.runs()), (vec![bearer(1), bearer(2)], 2));
    // What is refused for another reason than its age does not start the command with each request.
    assert_eq!(error(&rig.post(&asked()).await).domain, "provider_auth");
    assert_eq!(printer.runs(), 2);
}

#[tokio::test]
async fn a_command_that_fails_is_the_providers_refusal() {
    let last = format!("not logged in: {} is no use", token(1));
    // Why is for the operator: clients learn neither the program nor what it said.
    let expected = "The command that prints the provider's token has failed; the log says why.";
    for then in [
        format!("echo first >&2; echo '{last}.' >&2; echo >&2; exit 3"),
        "exit 1".to_owned(),
        "echo two lines".to_owned(),
    ] {
        let printer = Printer::new(&then);
        let rig = printer.rig(refusing(&[]).await).await;
        for _ in 0..2 {
            let answer = rig.post(&asked()).await;
            assert_eq!(error(&answer).domain, "provider_auth", "{then}");
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            assert!(text.contains(expected), "{then}: {text}");
            assert!(!text.contains("canary") && !text.contains("logged in"), "{then}: {text}");
        }
        assert_eq!(
            (rig.upstream.requests().len(), printer.runs()),
            (0, 1),
            "{then}: everybody is told the same for a while"
        );
    }
}

//! `godex init`: the wizard on a terminal, and without questions.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::json;
use testkit::{Script, Upstream};

use crate::cli::{command, godex, home};
use crate::codex::terminal::Terminal;

fn with_key(home: &Path, args: &[&str]) -> Command {
    let mut command = command(home, args);
    command.env("DEEPSEEK_API_KEY", "sk-from-the-environment");
    command
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Whether it loads, once its variables are set.
fn loads(home: &Path, file: &str) {
    let output = with_key(home, &["config", "check", "--config", file]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Answers with a list of models to the right key only.
async fn provider() -> Upstream {
    Upstream::start_with(|request| match request.header("authorization") {
        Some("Bearer sk-the-right-key-0123156789") => {
            Script::json(200, &json!({"object": "list", "data": [{"id": "m1", "object": "model"}, {"id": "m2"}]}))
        }
        _ => Script::json(401, &json!({"error": {"message": "wrong key"}})),
    })
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wizard_asks_checks_shows_and_writes() {
    let (home, upstream) = (home(""), provider().await);
    let mut terminal = Terminal::start(&with_key(home.path(), &["init", "--no-codex"]));
    let screen = terminal.until("number or name [1]: ");
    assert!(screen.contains("found: deepseek   key in DEEPSEEK_API_KEY"), "{screen}");
    terminal.keys("2\n");
    terminal.until("numbers or names, with commas");
    terminal.keys("nobody\n");
    terminal.until("there is no nobody");
    terminal.keys("deepseek, openai-compatible\n");
    terminal.until("address [https://api.deepseek.com]: ");
    terminal.keys("\n");
    terminal.until("key: from DEEPSEEK_API_KEY");
    terminal.until("Check the key by asking for the models? [Y/n] ");
    terminal.keys("n\n");
    terminal.until("model [deepseek-v4-pro]: ");
    terminal.keys("\n");
    terminal.until("address: ");
    terminal.keys("ftp://nothing\n");
    terminal.until("address: ");
    terminal.keys(&format!("{}/v1\n", upstream.url()));
    // What is typed now is not shown.
    for (key, refused) in [("sk-the-wrong-key-0123156789", true), ("sk-the-right-key-0123156789", false)] {
        terminal.until("key (hidden");
        terminal.until(": ");
        terminal.keys(&format!("{key}\n"));
        let screen = terminal.until("Check the key");
        assert!(screen.contains("It will be written into the file") && !screen.contains("0123156789"), "{screen}");
        terminal.keys("y\n");
        if refused {
            terminal.until("the key was refused (401)");
            terminal.until("Type another key? [Y/n] ");
            terminal.keys("\n");
        }
    }
    terminal.until("models: m1, m2");
    terminal.until("model [m1]: ");
    terminal.keys("m2\n");
    terminal.until("Who answers when a client names no provider?");
    terminal.until("number or name [1]: ");
    terminal.keys("openai\n");
    terminal.until("Port [5678]: ");
    terminal.keys("70000\n");
    terminal.until("a number from 1 to 65535");
    terminal.keys("15678\n");
    terminal.until("kept?");
    terminal.until("number or name [1]: ");
    terminal.keys("\n");
    terminal.until("How much is logged?");
    terminal.until("number or name [2]: ");
    terminal.keys("warn\n");
    let preview = terminal.until("Write this to godex.yaml? [Y/n] ");
    assert!(preview.contains("api_key: sk-t…6789") && !preview.contains("sk-the-right-key"), "{preview}");
    assert!(!home.path().join("godex.yaml").exists());
    terminal.keys("y\n");
    let (rest, status) = terminal.end();
    assert_eq!(status.code(), Some(0), "{rest}");
    assert!(rest.contains("wrote  godex.yaml") && rest.contains("  godex           # serve"), "{rest}");
    let path = home.path().join("godex.yaml");
    let text = fs::read_to_string(&path).unwrap();
    for line in [
        "default_provider: openai-compatible",
        "      api_key: ${DEEPSEEK_API_KEY}",
        "      api_key: sk-the-right-key-0123156789",
        "    models: [m2]",
        "    \"*\": openai-compatible/m2",
        "  port: 15678",
        "  backend: sqlite",
        "  level: warn",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert_eq!(mode(&path), 0o600);
    loads(home.path(), "godex.yaml");
}

/// Wherever the user stops, nothing is written, and the terminal is as it was.
#[test]
fn who_stops_has_written_nothing() {
    for stop in ["\u{3}", "\u{4}", "half a line\u{3}"] {
        for steps in 0..3 {
            let home = home("");
            let mut terminal = Terminal::start(&with_key(home.path(), &["init", "--no-codex"]));
            let asked =
                ["number or name [1]: ", "numbers or names, with commas", "address [https://api.deepseek.com]: "];
            let answers = ["1\n", "deepseek\n"];
            for (index, question) in asked.iter().enumerate().take(steps + 1) {
                terminal.until(question);
                terminal.until(if question.ends_with(": ") { "" } else { ": " });
                terminal.keys(if index == steps { stop } else { answers[index] });
            }
            let (rest, status) = terminal.end();
            assert_eq!(status.code(), Some(1), "{stop:?} {steps}: {rest}");
            assert!(rest.contains("cancelled; nothing was written"), "{stop:?} {steps}: {rest}");
            assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
        }
    }
}

#[test]
fn a_wizard_that_is_killed_has_written_nothing() {
    let home = home("");
    let mut terminal = Terminal::start(&command(home.path(), &["init"]));
    terminal.until("number or name [1]: ");
    terminal.signal(Signal::TERM);
    terminal.end();
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn port_zero_is_one_that_is_free() {
    let home = home("");
    let args = ["init", "--yes", "--config", "g.yaml", "--no-codex", "--provider", "deepseek", "--port", "0"];
    let output = with_key(home.path(), &args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(home.path().join("g.yaml")).unwrap();
    let port = text.lines().find_map(|line| line.strip_prefix("  port: ")).unwrap().parse::<u16>().unwrap();
    assert!(port > 0 && port != 5678, "{text}");
}

#[test]
fn scripts_say_it_with_flags() {
    let home = home("");
    let (code, _, err) = godex(home.path(), &["init"]);
    assert!(code == Some(1) && err.contains("there is no terminal to ask on: add --yes"), "{err}");
    let args = ["init", "--yes", "--config", "g.yaml", "--provider", "deepseek", "--provider"];
    let more = ["openai-compatible=https://llm.example.com/v1", "--model", "openai-compatible/big", "--port", "7000"];
    let rest = ["--backend", "memory", "--log-level", "debug"];
    let all = [&args[..], &more, &rest].concat();
    let output = with_key(home.path(), &all).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    let path = home.path().join("g.yaml");
    let text = fs::read_to_string(&path).unwrap();
    for line in
        ["  port: 7000", "default_provider: deepseek", "    models: [big]", "  backend: memory", "  level: debug"]
    {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert_eq!(mode(&path), 0o600);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("godex --config g.yaml doctor"), "{said}");
    let again = with_key(home.path(), &all).output().unwrap();
    assert!(!again.status.success() && String::from_utf8_lossy(&again.stderr).contains("add --force"));
    assert!(with_key(home.path(), &[&all[..], &["--force"]].concat()).output().unwrap().status.success());
    assert_eq!(fs::read_to_string(home.path().join("g.yaml.godex-backup-1")).unwrap(), text);
    for (args, expected) in [
        (&["--provider", "deepsek"][..], "did you mean `deepseek`?"),
        (&["--provider", "azure"], "say azure=https://"),
        (&["--provider", "vllm=ftp://x"], "nothing was written"),
        (&["--provider", "openai", "--check-keys"], "OPENAI_API_KEY is not set"),
    ] {
        let all = [&["init", "--yes", "--config", "other.yaml"][..], args].concat();
        let (code, _, err) = godex(home.path(), &all);
        assert!(code == Some(1) && err.contains(expected), "{args:?}: {err}");
        assert!(!home.path().join("other.yaml").exists());
    }
}

/// What was typed or found becomes a file that loads, whatever is chosen.
#[test]
fn every_provider_can_be_written() {
    let specs = fs::read_dir(testkit::root().join("specs")).unwrap();
    let names = specs.filter_map(|entry| Some(entry.unwrap().file_name().to_str()?.strip_suffix(".yaml")?.to_owned()));
    for name in names.filter(|name| !["demo", "families"].contains(&&**name)) {
        let home = home("");
        let said = format!("{name}=https://up.example.com/v1");
        let (code, _, err) =
            godex(home.path(), &["init", "--yes", "--no-codex", "--config", "g.yaml", "--provider", &said]);
        assert_eq!(code, Some(0), "{name}: {err}");
        assert!(home.path().join("g.yaml").exists());
    }
}

/// A list that everybody gets says nothing of a key, and where none was sent nothing is said of one.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_called_good_only_where_it_was_tried() {
    let list = || Script::json(200, &json!({"object": "list", "data": [{"id": "m1"}, {"id": "m2"}]}));
    let (open, closed) = (Upstream::start(list()).await.unwrap(), provider().await);
    for (upstream, spec, key, expected) in [
        (&open, "xai", Some("sk-any"), "xai: reached; its list needs no key, so the key was not tried; 2 models"),
        (&closed, "xai", Some("sk-the-right-key-0123156789"), "xai: the key is good; 2 models"),
        (&closed, "xai", Some("sk-wrong"), "xai: the key was refused (401)"),
        (&open, "vllm", None, "vllm: it answers; 2 models"),
        (&closed, "vllm", None, "vllm: it wants a key (401)"),
    ] {
        let home = home("");
        let said = format!("{spec}={}/v1", upstream.url());
        let args = ["init", "--yes", "--no-codex", "--check-keys", "--config", "g.yaml", "--provider", &said];
        let mut command = command(home.path(), &args);
        key.map(|key| command.env("XAI_API_KEY", key));
        let output = command.output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(err.contains(expected), "{expected}: {err}");
        let is_refused = expected.ends_with("(401)");
        assert_eq!((output.status.success(), home.path().join("g.yaml").exists()), (!is_refused, !is_refused), "{err}");
    }
}

/// A page is no provider, whatever its status is.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_where_no_provider_is_writes_nothing() {
    let html = Script::body(200, "text/html", "<html><title>Log in</title></html>");
    for (answer, why) in [
        (html, "xai: it answered 200, but no JSON, a web page: Log in; its address is another one"),
        (Script::json(200, &json!({"up": true})), "xai: it answered 200, but no list: "),
    ] {
        let upstream = Upstream::start(answer).await.unwrap();
        let (home, said) = (home(""), format!("xai={}/v1", upstream.url()));
        let args = ["init", "--yes", "--no-codex", "--check-keys", "--config", "g.yaml", "--provider", &said];
        let output = command(home.path(), &args).env("XAI_API_KEY", "sk-any").output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && err.contains(why), "{err}");
        assert!(!home.path().join("g.yaml").exists());
    }
}

#[test]
fn without_a_home_there_is_one_place() {
    let home = home("");
    let mut command = command(home.path(), &["init", "--no-codex"]);
    command.env_remove("HOME");
    let mut terminal = Terminal::start(&command);
    let screen = terminal.until("Which providers?");
    assert!(screen.contains("There is no HOME") && !screen.contains("Where should the configuration be?"), "{screen}");
    drop(terminal);
}

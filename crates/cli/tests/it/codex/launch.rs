//! `godex codex`.

use std::process::Stdio;

use rustix::process::Signal;
use testkit::Client;

use super::terminal::{Terminal, can_control};
use super::{Home, base_url, given};
use crate::sessions::Godex;

async fn status(url: &str) -> Option<u16> {
    Client::new().unwrap().get(url).await.ok().map(|answer| answer.status)
}

/// Two at once: the database file is one process's, and neither takes it.
#[tokio::test]
async fn a_fresh_home_runs_codex_in_its_terminal() {
    let home = Home::new("");
    let start = || {
        let mut command = home.command(&["codex", "--port", "1", "--", "resume", "--last", "it's \"here\""]);
        command.env("FAKE_WAIT", "1").env("FAKE_EXIT", "7");
        Terminal::start(&command)
    };
    let mut terminals = [start(), start()];
    let mut addresses = Vec::new();
    for terminal in &mut terminals {
        let screen = terminal.until("ready:");
        let (before, _) = screen.split_once("arg:").unwrap();
        assert!(before.contains("model demo, provider demo") && before.contains("no provider has a key"), "{before}");
        assert!(before.contains("started for this session at http://127.0.0.1:"), "{before}");
        assert!(before.lines().count() <= 10, "{before}");
        let arguments = given(&screen, "arg:");
        assert_eq!(arguments[arguments.len() - 3..], ["resume", "--last", "it's \"here\""]);
        for expected in ["model_provider=\"godex\"", "model=\"demo\"", "web_search=\"disabled\""] {
            assert!(arguments.contains(&expected), "{expected} in {arguments:?}");
        }
        let catalog = home.path().join(".godex/data/codex-models.json");
        let expected = format!("model_catalog_json=\"{}\"", catalog.display());
        assert!(arguments.contains(&expected.as_str()) && catalog.exists(), "{arguments:?}");
        // A key that nobody else on this machine has.
        assert!(given(&screen, "key:")[0].starts_with("gdx_"), "{screen}");
        assert_eq!(given(&screen, "terminal:"), ["yes"]);
        let url = base_url(&screen);
        assert_eq!(status(&format!("{url}/models")).await, Some(401), "{url}");
        addresses.push(url);
    }
    assert_ne!(addresses[0], addresses[1]);
    for (mut terminal, url) in terminals.into_iter().zip(addresses) {
        terminal.keys("typed by hand\n");
        let (screen, status_of) = terminal.end();
        assert_eq!(given(&screen, "line:"), ["typed by hand"]);
        assert_eq!(status_of.code(), Some(7));
        assert_eq!(status(&format!("{url}/models")).await, None, "it ended with Codex");
    }
    assert!(!home.codex_home().exists(), "no file of the user's is touched");
    let log = std::fs::read_to_string(home.path().join(".godex/data/codex.log")).unwrap();
    assert!(log.contains("/v1/models"), "{log}");
    assert!(!home.path().join(".godex/data/sessions.db").exists());
}

#[tokio::test]
async fn a_godex_that_runs_is_used_if_it_is_like_this_one() {
    let config = "session: {backend: memory}\nproviders: {groq: {credentials: {api_key: k}, models: [llama]}}\n";
    let home = Home::new(config);
    let running = Godex::logging_to(home.path(), Stdio::null());
    let port = running.url.rsplit(':').next().unwrap().to_owned();
    let run = |args: &[&str]| {
        let (code, out, err) = home.godex(&[&["codex", "--port", &port][..], args].concat());
        assert_eq!(code, Some(0), "{err}");
        (out, err)
    };
    let (out, err) = run(&["--model", "llama"]);
    assert_eq!(base_url(&out), format!("{}/v1", running.url));
    assert!(err.contains("model llama, provider groq") && err.contains("the one that runs at"), "{err}");
    let (out, _) = run(&["--", "--model", "llama"]);
    assert!(given(&out, "arg:").ends_with(&["--model", "llama"]), "{out}");

    std::fs::write(home.path().join("other.yaml"), config.replace("llama", "other")).unwrap();
    let (out, err) = run(&["--config", "other.yaml"]);
    assert_ne!(base_url(&out), format!("{}/v1", running.url));
    assert!(err.contains("does not list the model other") && err.contains("started for this session"), "{err}");
    drop(running);

    let stranger = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = stranger.local_addr().unwrap().port().to_string();
    std::thread::spawn(move || {
        for stream in stranger.incoming() {
            let mut stream = stream.unwrap();
            let _ = std::io::Read::read(&mut stream, &mut [0; 4096]);
            let _ = std::io::Write::write_all(&mut stream, b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
        }
    });
    let (_, _, err) = home.godex(&["codex", "--port", &port]);
    assert!(err.contains("what answers is not godex"), "{err}");
}

#[test]
fn keys_and_signals_are_codexs() {
    let home = Home::new("");
    let start = || {
        let mut command = home.command(&["codex", "--port", "1"]);
        command.env("FAKE_WAIT", "1");
        let mut terminal = Terminal::start(&command);
        terminal.until("ready:");
        terminal
    };
    let terminal = start();
    terminal.signal(Signal::TERM);
    let (screen, status) = terminal.end();
    assert!(screen.contains("signal:") && status.code() == Some(9), "{status} {screen}");
    if !can_control() {
        return testkit::skipped("setsid, for a terminal whose keys make signals");
    }
    let mut terminal = start();
    terminal.keys("\x03");
    let (screen, status) = terminal.end();
    assert!(screen.contains("signal:") && status.code() == Some(9), "{status} {screen}");
}

#[test]
fn a_codex_that_is_killed_ends_as_shells_say_it() {
    let home = Home::new("session: {backend: memory}");
    std::fs::write(home.codex(), "#!/bin/sh\nkill -KILL $$\n").unwrap();
    assert_eq!(home.godex(&["codex", "--port", "1"]).0, Some(128 + 9));
}

#[test]
fn what_is_missing_is_said() {
    let home = Home::new("session: {backend: memory}");
    for (args, expected) in [
        (&["codex", "--codex", "/no/such/codex"][..], "error: /no/such/codex: there is no such program\n"),
        (&["codex", "--codex", "godex.yaml"], "error: godex.yaml: it is no program that may be run\n"),
        (&["env", "--port", "0"], "error: port 0 is any that is free"),
        (&["codex", "--model", "demo/"], "error: --model demo/: The model `demo/` does not exist"),
        (&["codex", "--config", "gone.yaml"], "error: gone.yaml: there is no such file"),
    ] {
        let (code, out, err) = home.godex(args);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{args:?}: {err}");
        assert!(err.starts_with(expected), "{args:?}: {err}");
    }
    let unwritable = Home::new("session: {backend: sqlite, sqlite: {path: godex.yaml/sessions.db}}");
    let (code, _, err) = unwritable.godex(&["codex", "--port", "1"]);
    assert!(code == Some(1) && err.contains("error: cannot start godex: cannot read or create the key"), "{err}");
    std::fs::remove_file(home.codex()).unwrap();
    let (code, _, err) = home.godex(&["codex"]);
    assert!(code == Some(1) && err.contains("npm install -g @openai/codex"), "{err}");
}

#[test]
fn a_provider_of_the_same_name_and_a_proxy_do_not_get_between() {
    let home = Home::new("session: {backend: memory}");
    home.write("config.toml", "[model_providers.godex]\nhttp_headers = {x = 'y'}\n");
    let script = "#!/bin/sh\nfor a in \"$@\"; do echo \"arg:$a\"; done\necho \"past:$NO_PROXY\"\n";
    std::fs::write(home.codex(), script).unwrap();
    let mut command = home.command(&["codex", "--port", "1"]);
    let output = command.env("HTTP_PROXY", "http://127.0.0.1:9").env("NO_PROXY", "a.example").output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(given(&out, "arg:").contains(&"model_provider=\"godex-session\""), "{out}");
    assert_eq!(given(&out, "past:"), ["a.example,127.0.0.1,localhost,::1"]);
    assert_eq!(home.codex_files().len(), 1);
}

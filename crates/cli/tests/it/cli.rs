//! The binary as a user runs it: a clean environment, a home of its own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A directory that is both home and current directory.
pub(crate) fn home(config: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    if !config.is_empty() {
        std::fs::write(dir.path().join("godex.yaml"), config).unwrap();
    }
    dir
}

pub(crate) fn command(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_godex"));
    command.args(args).env_clear().env("HOME", home).current_dir(home);
    command
}

pub(crate) fn godex(home: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command(home, args).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// What it prints, all being well.
pub(crate) fn run(home: &Path, args: &[&str]) -> String {
    let (code, out, err) = godex(home, args);
    assert_eq!(code, Some(0), "{args:?}: {err}");
    out
}

/// What it says is wrong.
pub(crate) fn refused(home: &Path, args: &[&str]) -> String {
    let (code, out, err) = godex(home, args);
    assert_eq!((code, out.as_str()), (Some(1), ""), "{args:?}: {err}");
    err
}

#[test]
fn version_help_and_completions() {
    let home = home("");
    let version = concat!("godex ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(godex(home.path(), &["--version"]), (Some(0), version.to_owned(), String::new()));
    for (args, expected) in [
        (&["--help"][..], "Usage: godex"),
        (&["demo"], "call NAME {json}"),
        (&["demo", "--help"], "call NAME {json}"),
        (&["completions", "bash"], "_godex()"),
    ] {
        let (code, out, _) = godex(home.path(), args);
        assert_eq!(code, Some(0), "{args:?}");
        assert!(out.contains(expected), "{args:?}: {out}");
    }
    assert_eq!(godex(home.path(), &["--port", "x"]).0, Some(2));
}

#[test]
fn config_check_summarises_what_is_good() {
    let home = home("server: {port: 8080}\nsession: {backend: memory}\nproviders: {groq: {credentials: {api_key: k}}}");
    let (code, out, err) = godex(home.path(), &["config", "check", "--host", "localhost"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let (first, rest) = out.split_once('\n').unwrap();
    assert!(first.starts_with("OK: ") && first.ends_with("godex.yaml"), "{first}");
    let expected = "server: http://localhost:8080\ndefault provider: groq\nproviders: groq, demo\nsession: memory\n";
    assert_eq!(rest, expected);
    let (_, out, _) = godex(tempfile::tempdir().unwrap().path(), &["config", "check"]);
    assert!(out.starts_with("OK: built-in defaults\n"), "{out}");
}

#[test]
fn config_check_lists_what_is_wrong() {
    let home = home("server: {prot: 1}\nproviders:\n  deepseek:\n    credentials: {api_kye: x}\n");
    let (code, out, err) = godex(home.path(), &["config", "check"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    let expected = "error: 3 problems with the configuration
godex.yaml:1:10: server: unknown key `prot`; did you mean `port`?
godex.yaml:3:3: providers.deepseek: credentials.api_key is missing; set it here, or set the environment variable DEEPSEEK_API_KEY
godex.yaml:4:19: providers.deepseek.credentials: unknown key `api_kye`; did you mean `api_key`?
";
    assert_eq!(err, expected);
    let (code, _, err) = godex(home.path(), &["--config", "gone.yaml"]);
    assert_eq!(
        (code, err.as_str()),
        (Some(1), "error: gone.yaml: there is no such file; the path came from --config\n")
    );
}

#[test]
fn config_print_hides_secrets() {
    let home = home("providers: {groq: {credentials: {api_key: gsk-secret}, headers: {x-token: tok-secret}}}");
    let (code, out, _) = godex(home.path(), &["config", "print"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("api_key: <redacted>") && out.contains("x-token: <redacted>"), "{out}");
    assert!(!out.contains("secret"), "{out}");
}

#[test]
fn config_print_shows_the_sessions_in_force() {
    let url = "postgres://me:pw-secret@db/godex";
    for (session, expected) in [
        ("{}".to_owned(), "backend: sqlite\n  sqlite:\n    path: "),
        ("{ttl: 12h}".to_owned(), "\n  ttl: 12h\n"),
        ("{ttl: never, backend: memory, max_bytes: 2097152}".to_owned(), "backend: memory\n  max_bytes: 2MiB\n"),
        (
            format!("{{backend: postgres, postgres: {{url: '{url}', connections: 3, retry_ms: 700}}}}"),
            "backend: postgres\n  postgres:\n    url: <redacted>\n    connections: 3\n    acquire_ms: 2000\n    \
             statement_ms: 5000\n    retry_ms: 700\n",
        ),
    ] {
        let home = home(&format!("session: {session}\n"));
        let (code, out, err) = godex(home.path(), &["config", "print"]);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{session}");
        assert!(out.contains(expected) && !out.contains("secret"), "{session}: {out}");
    }
}

/// What a reader copies from the documentation must load.
#[test]
fn examples_in_the_documentation_load() {
    let mut found = 0;
    for page in ["README.md", "docs/hosted-tools.md", "docs/sessions.md", "docs/setup.md", "docs/upstreams.md"] {
        let text = std::fs::read_to_string(testkit::root().join(page)).unwrap();
        for example in text.split("```yaml\n").skip(1) {
            let home = home(example.split("```").next().unwrap());
            let mut command = command(home.path(), &["config", "check"]);
            let keys = ["CLOCK_KEY", "DEEPSEEK_API_KEY", "DOCS_KEY", "KEY_ONE", "KEY_TWO", "MY_KEY", "SPARE_KEY"];
            for key in keys.iter().chain(&["TAVILY_API_KEY"]) {
                command.env(key, "sk-1");
            }
            command.env("GODEX_DATABASE_URL", "postgres://godex@localhost/godex");
            let Output { status, stderr, .. } = command.output().unwrap();
            assert!(status.success(), "{page}:\n{example}\n{}", String::from_utf8_lossy(&stderr));
            found += 1;
        }
    }
    assert!(found >= 5, "{found}");
}

#[test]
fn an_error_of_the_system_is_said_once() {
    for (config, args) in [
        ("session: {sqlite: {path: godex.yaml/below/a/file.db}}", &["--port", "0"][..]),
        ("session: {sqlite: {path: .}}", &["--port", "0"]),
        ("session: {backend: memory}", &["--host", "203.0.113.1"]),
        ("providers: {groq: {credentials: {api_key: k}, ca: /no/such/file}}", &["config", "check"]),
    ] {
        let home = home(&format!("server: {{allow_unauthenticated: true}}\n{config}\n"));
        let (code, _, err) = godex(home.path(), args);
        assert_eq!(code, Some(1), "{args:?}: {err}");
        let last = err.lines().last().unwrap_or_default();
        assert_eq!(last.matches("(os error ").count() + last.matches("Error code ").count(), 1, "{args:?}: {last}");
    }
}

/// Names from the configuration cannot act on the terminal, and what is printed still loads.
#[test]
fn what_is_printed_for_people_has_no_control_characters() {
    let home = home(
        "providers:\n  \"up\\e[31m\\u202e\":\n    spec: {extends: openai-compatible, family: \"f\\x9b\"}\n    \
         endpoint: {base_url: 'http://127.0.0.1:1/v1'}\n    models: [\"m\\r\\e[2J\\u2028\"]\n",
    );
    for (args, code) in [
        (&["models"][..], 0),
        (&["config", "check"], 0),
        (&["config", "print"], 0),
        (&["providers"], 0),
        (&["providers", "show", "up\u{1b}[31m\u{202e}"], 0),
        (&["providers", "show", "\u{1b}[31m"], 1),
        (&["probe", "\u{1b}[31m"], 1),
    ] {
        let (found, out, err) = godex(home.path(), args);
        assert_eq!(found, Some(code), "{args:?}: {err}");
        let acts = |c: char| c != '\n' && wire::visible::acts(c);
        assert!(!out.contains(acts) && !err.contains(acts), "{args:?}: {out:?} {err:?}");
    }
    let (_, printed, _) = godex(home.path(), &["config", "print"]);
    std::fs::write(home.path().join("again.yaml"), &printed).unwrap();
    let (code, again, err) = godex(home.path(), &["config", "print", "--config", "again.yaml"]);
    assert_eq!(code, Some(0), "{err}\n{printed}");
    assert_eq!(again.lines().skip(1).collect::<Vec<_>>(), printed.lines().skip(1).collect::<Vec<_>>());
    std::fs::write(home.path().join("godex.yaml"), "\"se\\e[31mver\": 1\nserver: {host: \"\\e[0m\"}\n").unwrap();
    let (code, _, err) = godex(home.path(), &["config", "check"]);
    assert_eq!(code, Some(1));
    assert!(err.contains(r"unknown key `se\u{1b}[31mver`") && !err.contains('\x1b'), "{err:?}");
}

#[test]
fn models_are_listed() {
    let home =
        home("providers: {groq: {credentials: {api_key: k}, models: [llama]}}\nmodels: {aliases: {fast: groq/llama}}");
    let (code, out, _) = godex(home.path(), &["models"]);
    assert_eq!(code, Some(0));
    assert_eq!(
        out,
        "MODEL    CONTEXT  PROVIDER\nfast           -  groq\nllama          -  groq\ndemo           -  demo\n"
    );
}

#[test]
fn serve_says_where_and_a_taken_port_is_one_line() {
    let home = home("session: {backend: memory}");
    let mut first =
        command(home.path(), &["--port", "0"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(first.stdout.take().unwrap()).lines().map_while(Result::ok);
    let banner: Vec<String> = lines.take_while(|line| !line.contains("\"input\"")).collect();
    let address = banner.iter().find_map(|line| line.strip_prefix("address:    http://127.0.0.1:")).unwrap().to_owned();
    let (code, out, err) = godex(home.path(), &["serve", "--port", &address]);
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains(&address) && err.lines().filter(|line| line.starts_with("error: ")).count() == 1, "{err}");
}

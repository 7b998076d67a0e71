//! `godex mcp`, as a user runs it, against servers of both eras and a process.

use testkit::mcp::{McpServer, STDIO};

use crate::cli::{godex, home};

const SECRET: &str = "canary-of-a-key";

#[tokio::test(flavor = "multi_thread")]
async fn servers_are_listed_checked_and_called() {
    let (modern, legacy) = (McpServer::modern().await.unwrap(), McpServer::legacy().await.unwrap());
    // The script's variables are its own.
    let script = serde_json::to_string(&STDIO.replace("${", "$${")).unwrap();
    let home = home(&format!(
        "tools:\n  mcp:\n    servers:\n      new: {{url: '{}', headers: {{authorization: {SECRET}}}}}\n      old: {{url: '{}'}}\n      \
         shell: {{command: [/bin/sh, -c, {script}], env: {{KEY: {SECRET}}}}}\n      gone: {{url: 'http://127.0.0.1:1/mcp'}}\n",
        modern.url(),
        legacy.url(),
    ));
    let run = |args: &[&str]| godex(home.path(), &[&["mcp"], args].concat());

    let (code, out, err) = run(&["check"]);
    assert_eq!((code, err.as_str()), (Some(1), ""), "one cannot be reached: {out}");
    for (line, expected) in out.lines().zip([
        ["new (", "protocol 2026-07-28", " tools"],
        ["old (", "protocol 2025-11-25", " tools"],
        ["shell (command /bin/sh)", "protocol 2025-11-25", "5 tools"],
        ["gone (http://127.0.0.1:1/mcp)", "cannot be asked", ": "],
    ]) {
        assert!(expected.iter().all(|part| line.contains(part)), "{expected:?}: {line}");
    }
    assert_eq!(out.lines().count(), 4, "{out}");

    let (code, out, _) = run(&["list", "new"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("\n  echo (read-only): Says it again.\n"), "{out}");
    let (_, out, _) = run(&["list", "shell", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(listed["servers"][0]["tools"][0]["name"], "echo");

    for (args, code, stdout, stderr) in [
        (&["call", "new", "echo", r#"{"text": "again"}"#][..], 0, "again", ""),
        (&["call", "old", "echo", r#"{"text": "again"}"#], 0, "again", ""),
        (&["call", "shell", "echo"], 0, "echo\n", ""),
        (
            &["call", "shell", "ecko"],
            1,
            "",
            "error: `shell` has no tool `ecko`; did you mean `echo`? There are: echo, ",
        ),
        (&["call", "shel", "echo"], 1, "", "error: there is no MCP server `shel`; did you mean `shell`?"),
        (
            &["call", "new", "echo", "{"],
            1,
            "",
            "error: the arguments are not JSON: EOF while parsing an object at line 1 column 1",
        ),
        (&["call", "gone", "echo"], 1, "", "error: `gone` cannot be asked: "),
    ] {
        let (found, out, err) = run(args);
        assert!(found == Some(code) && out.contains(stdout) && err.contains(stderr), "{args:?}: {found:?} {out} {err}");
        assert!(!out.contains(SECRET) && !err.contains(SECRET), "{args:?}");
    }
}

use std::time::Duration;

use super::*;

/// Servers with these tools; one that is called `gone` cannot be asked.
struct Fake(&'static [&'static str]);

impl Servers for Fake {
    fn check(&self, server: &McpServerConfig) -> Result<Checked, String> {
        if server.label == "gone" {
            return Err("connection refused".to_owned());
        }
        let tool = |name: &&str| ListedTool {
            name: (*name).to_owned(),
            description: Some(format!("About {name}.\nMore.")),
            input_schema: r#"{"type":"object"}"#.to_owned(),
            read_only: *name == "now",
            allowed: server.allowed_tools.as_ref().is_none_or(|allowed| allowed.iter().any(|one| one == name)),
        };
        Ok(Checked {
            server: Some("fake".to_owned()),
            version: "2026-07-28".to_owned(),
            tools: self.0.iter().map(tool).collect(),
            took: Duration::from_millis(7),
        })
    }

    fn check_all(&self, servers: &[&McpServerConfig]) -> Vec<Result<Checked, String>> {
        servers.iter().map(|server| self.check(server)).collect()
    }

    fn call(&self, label: &str, tool: &str, arguments: &str) -> Result<Called, String> {
        let text = format!("{label} {tool} {arguments}");
        Ok(Called { text, images: Vec::new(), failed: tool == "fail" })
    }
}

const TOOLS: Fake = Fake(&["now", "delete", "fail"]);

/// A label, the allowed tools, whether it is optional.
type Row<'a> = (&'a str, Option<&'a [&'a str]>, bool);

fn declared(servers: &[Row<'_>]) -> Vec<McpServerConfig> {
    let server = |(label, allowed, optional): &Row<'_>| McpServerConfig {
        label: (*label).to_owned(),
        at: McpAddress::Url { url: "https://mcp.example.com/secret".to_owned(), headers: Vec::new() },
        allowed_tools: allowed.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
        require_approval: None,
        optional: *optional,
        client_headers: false,
        price_per_call: None,
    };
    servers.iter().map(server).collect()
}

#[test]
fn servers_are_listed_with_their_tools() {
    let servers = declared(&[("clock", Some(&["now"]), false), ("gone", None, true)]);
    let (out, good) = list(&servers, &TOOLS, None, false).unwrap();
    let expected = "clock (https://mcp.example.com/<redacted>): fake, protocol 2026-07-28, 3 tools, 7 ms\n  now (read-only): About now.\n  \
                    delete (not allowed): About delete.\n  fail (not allowed): About fail.\n\n\
                    gone (https://mcp.example.com/<redacted>): cannot be asked, and is optional: connection refused\n";
    assert_eq!((out.as_str(), good), (expected, false));
    let (out, good) = list(&servers, &TOOLS, Some("clock"), true).unwrap();
    let listed: Value = serde_json::from_str(&out).unwrap();
    let first = json!({"name": "now", "description": "About now.\nMore.", "read_only": true, "allowed": true,
        "input_schema": {"type": "object"}});
    assert_eq!((&listed["servers"][0]["tools"][0], good), (&first, true));
    assert!(!out.contains("secret"), "{out}");
    assert_eq!(list(&[], &TOOLS, None, false).unwrap(), (NONE.to_owned(), true));
}

#[test]
fn what_is_wrong_is_found() {
    let cases: [(&[Row<'_>], bool, &str); 5] = [
        (&[], true, "no MCP servers are declared"),
        (
            &[("clock", None, false)],
            true,
            "clock (https://mcp.example.com/<redacted>): fake, protocol 2026-07-28, 3 tools",
        ),
        (&[("clock", Some(&["nwo"]), false)], false, "  allowed_tools: there is no tool `nwo`; did you mean `now`?"),
        (
            &[("gone", None, false)],
            false,
            "gone (https://mcp.example.com/<redacted>): cannot be asked: connection refused\n",
        ),
        (&[("gone", None, true)], false, "gone (https://mcp.example.com/<redacted>): cannot be asked, and is optional"),
    ];
    for (rows, good, expected) in cases {
        let servers = declared(rows);
        let (out, found) = check(&servers, &TOOLS, false);
        assert!(found == good && out.contains(expected), "{expected}: {out}");
        let summary: Value = serde_json::from_str(&check(&servers, &TOOLS, true).0).unwrap();
        assert_eq!((&summary["ok"], summary["servers"].as_array().unwrap().len()), (&json!(good), rows.len()));
    }
    let many: Vec<&'static str> = vec!["x"; MANY_TOOLS + 1];
    let (out, good) = check(&declared(&[("clock", None, false)]), &Fake(many.leak()), false);
    assert!(good && out.contains("129 tools are more than many providers take"), "{out}");
}

#[test]
fn a_call_says_what_came_of_it() {
    let servers = declared(&[("clock", None, false), ("strict", Some(&["now"]), false), ("gone", None, false)]);
    let said = |label: &str, tool: &str, arguments: &str| {
        call(&servers, &TOOLS, (label, tool), arguments, false).map_err(|error| format!("{error:#}"))
    };
    assert_eq!(said("clock", "now", r#"{"a":1}"#), Ok(("clock now {\"a\":1}\n".to_owned(), true)));
    let cases = [
        ("clok", "now", "{}", "there is no MCP server `clok`; did you mean `clock`? There are: clock, strict, gone"),
        ("zzzzzz", "now", "{}", "there is no MCP server `zzzzzz`; there are: clock, strict, gone"),
        ("clock", "nwo", "{}", "`clock` has no tool `nwo`; did you mean `now`? There are: now, delete, fail"),
        ("strict", "delete", "{}", "`delete` is not among the allowed_tools of `strict`: now"),
        ("clock", "now", "{\"a\": }", "the arguments are not JSON: expected value at line 1 column 7"),
        ("clock", "now", "[1]", "the arguments must be a JSON object, such as '{\"city\": \"Paris\"}'"),
        ("gone", "now", "{}", "`gone` cannot be asked: connection refused"),
        ("clock", "fail", "{}", "fail failed: clock fail {}"),
    ];
    for (label, tool, arguments, expected) in cases {
        assert_eq!(said(label, tool, arguments), Err(expected.to_owned()));
    }
    let (out, good) = call(&servers, &TOOLS, ("clock", "fail"), "{}", true).unwrap();
    let shown: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((shown, good), (json!({"is_error": true, "text": "clock fail {}", "images": []}), false));
}

use wire::json::FromRaw;

use super::*;
use crate::config::Secret;

fn server(label: &str, at: McpAddress, client_headers: bool) -> McpServerConfig {
    let label = label.to_owned();
    McpServerConfig {
        label,
        at,
        allowed_tools: None,
        require_approval: None,
        optional: false,
        client_headers,
        price_per_call: None,
    }
}

fn config(clients: McpClients) -> McpConfig {
    let url = |url: &str| McpAddress::Url {
        url: url.to_owned(),
        headers: vec![("authorization".to_owned(), Secret::new("Bearer operator".to_owned()))],
    };
    let command = McpAddress::Command { command: vec!["x".to_owned()], env: Vec::new(), inherited: Vec::new() };
    McpConfig {
        clients,
        allow: vec![
            "https://mcp.example.com/v1".to_owned(),
            "https://*.example.org/".to_owned(),
            "https://ports.example.com:8443/".to_owned(),
        ],
        servers: vec![
            server("clock", url("http://127.0.0.1:9000/clock"), false),
            server("open", url("http://127.0.0.1:9000/open"), true),
            server("files", command, true),
        ],
    }
}

fn read_one(tool: &str, config: &McpConfig) -> Result<Named, ApiError> {
    let tool = McpTool::from_raw(Raw::parse(tool).unwrap()).unwrap();
    Ok(read(&[(3, &tool)], config)?.remove(0))
}

#[test]
fn who_may_be_called_is_the_operators_word() {
    use McpClients::{AllowList, Declared, Off, Open};
    // Which server, by the policy: `-` is refused at `server_url`.
    let cases = [
        (r#""server_label":"clock""#, ["clock", "clock", "clock"]),
        (r#""server_label":"clock","server_url":"http://127.0.0.1:9000/clock""#, ["clock", "clock", "clock"]),
        (r#""server_label":"mine","server_url":"http://127.0.0.1:9000/clock""#, ["clock", "clock", "clock"]),
        (r#""server_label":"clock","server_url":"https://mcp.example.com/v1""#, ["-", "-", "-"]),
        (r#""server_label":"clock","server_url":"http://127.0.0.1:9000/open""#, ["-", "-", "-"]),
        (r#""server_label":"files""#, ["files", "files", "files"]),
        (r#""server_label":"mine""#, ["-", "-", "-"]),
        (r#""server_label":"mine","server_url":"""#, ["-", "-", "-"]),
        (r#""server_label":"mine","server_url":"https://mcp.example.com/v1""#, ["-", "public", "public"]),
        (r#""server_label":"mine","server_url":"https://mcp.example.com/v1/x?y""#, ["-", "public", "public"]),
        (r#""server_label":"mine","server_url":"https://mcp.example.com/v12""#, ["-", "-", "public"]),
        (r#""server_label":"mine","server_url":"https://mcp.example.com/v1/../v2""#, ["-", "-", "public"]),
        (r#""server_label":"mine","server_url":"https://mcp.example.com:8443/v1""#, ["-", "-", "-"]),
        (r#""server_label":"mine","server_url":"https://ports.example.com:8443/a""#, ["-", "public", "-"]),
        (r#""server_label":"mine","server_url":"https://mcp.example.com.evil.net/v1""#, ["-", "-", "public"]),
        (r#""server_label":"mine","server_url":"https://a.example.org/""#, ["-", "public", "public"]),
        (r#""server_label":"mine","server_url":"https://example.org/""#, ["-", "-", "public"]),
        (r#""server_label":"mine","server_url":"https://evilexample.org/""#, ["-", "-", "public"]),
        (r#""server_label":"mine","server_url":"https://u:p@a.example.org/""#, ["-", "-", "-"]),
        (r#""server_label":"mine","server_url":"http://a.example.org/""#, ["-", "-", "-"]),
        (r#""server_label":"mine","server_url":"https://127.0.0.1/""#, ["-", "-", "-"]),
        (r#""server_label":"mine","server_url":"https://0x7f.1/""#, ["-", "-", "-"]),
        (r#""server_label":"mine","server_url":"https://[::ffff:10.0.0.1]/""#, ["-", "-", "-"]),
        (r#""server_label":"mine","server_url":"https://169.254.169.254/latest""#, ["-", "-", "-"]),
        (r#""server_label":"mine","server_url":"https://localhost/""#, ["-", "-", "-"]),
        (r#""server_label":"mine","server_url":"https://a.localhost./""#, ["-", "-", "-"]),
        (r#""server_label":"mine","server_url":"https://redis/""#, ["-", "-", "-"]),
        (r#""server_label":"mine","server_url":"file:///etc/passwd""#, ["-", "-", "-"]),
        (r#""server_label":"mine","server_url":"mcp.example.com""#, ["-", "-", "-"]),
    ];
    for (tool, expected) in cases {
        for (clients, expected) in [Declared, AllowList, Open].into_iter().zip(expected) {
            let found = read_one(&format!(r#"{{"type":"mcp",{tool}}}"#), &config(clients));
            let found = match &found {
                Err(error) => {
                    assert_eq!(
                        (error.status.as_u16(), error.param.as_deref()),
                        (400, Some("tools[3].server_url")),
                        "{tool}"
                    );
                    assert!(!error.message.contains("127.0") && !error.message.contains("u:p"), "{}", error.message);
                    "-"
                }
                Ok(Named { at: ServerAt::Process(config), .. }) => config.label.as_str(),
                Ok(Named { at: ServerAt::Http { endpoint, reach: Reach::Anywhere }, .. }) => {
                    endpoint.url.rsplit('/').next().unwrap_or_default()
                }
                Ok(Named { at: ServerAt::Http { endpoint, .. }, .. }) => {
                    assert!(endpoint.headers.is_empty(), "the operator's credentials are for its own servers");
                    "public"
                }
            };
            assert_eq!(found, expected, "{tool} {clients:?}");
        }
        let off = read_one(&format!(r#"{{"type":"mcp",{tool}}}"#), &config(Off)).unwrap_err();
        assert_eq!(off.param.as_deref(), Some("tools[3]"));
    }
}

#[test]
fn labels_are_checked_and_not_repeated() {
    for (tool, param) in [
        (r#"{"server_url":"https://a.example.org"}"#, "tools[3].server_label"),
        (r#"{"server_label":""}"#, "tools[3].server_label"),
        (r#"{"server_label":"4x"}"#, "tools[3].server_label"),
        (r#"{"server_label":"a b"}"#, "tools[3].server_label"),
        (r#"{"server_label":"clock","connector_id":"connector_gmail"}"#, "tools[3].connector_id"),
        (r#"{"server_label":"clock","allowed_tools":[1]}"#, "tools[3].allowed_tools[0]"),
        (r#"{"server_label":"clock","require_approval":"maybe"}"#, "tools[3].require_approval"),
    ] {
        let error = read_one(tool, &config(McpClients::Open)).unwrap_err();
        assert_eq!((error.status.as_u16(), error.param.as_deref()), (400, Some(param)), "{tool}");
    }
    let tool = McpTool::from_raw(Raw::ours(r#"{"server_label":"clock"}"#)).unwrap();
    let error = read(&[(0, &tool), (2, &tool)], &config(McpClients::Declared)).unwrap_err();
    assert_eq!(error.param.as_deref(), Some("tools[2].server_label"));
}

fn headers_of(more: &str) -> Result<Vec<(String, String)>, ApiError> {
    let tool = format!(r#"{{"server_label":"mine","server_url":"https://a.example.org/",{more}}}"#);
    let named = read_one(&tool, &config(McpClients::Open))?;
    let ServerAt::Http { endpoint, .. } = named.at else { panic!("no HTTP") };
    let text = |(name, value): &(HeaderName, HeaderValue)| (name.to_string(), value.to_str().unwrap().to_owned());
    Ok(endpoint.headers.iter().map(text).collect())
}

#[test]
fn headers_are_those_that_may_be_sent() {
    let authorization = |value: &str| vec![("authorization".to_owned(), value.to_owned())];
    for (more, expected) in [
        (r#""headers":null"#, vec![]),
        (r#""headers":{}"#, vec![]),
        (r#""authorization":null"#, vec![]),
        (r#""authorization":"abc""#, authorization("Bearer abc")),
        (r#""authorization":"Bearer abc""#, authorization("Bearer abc")),
        (r#""headers":{"Authorization":"Basic x"}"#, authorization("Basic x")),
        (r#""headers":{"X-Team":"blue"}"#, vec![("x-team".to_owned(), "blue".to_owned())]),
    ] {
        assert_eq!(headers_of(more).unwrap(), expected, "{more}");
    }
    for name in [
        "Host",
        "Connection",
        "Content-Length",
        "Transfer-Encoding",
        "TE",
        "Upgrade",
        "Proxy-Authorization",
        "Keep-Alive",
        "Mcp-Session-Id",
        "MCP-Protocol-Version",
        "Accept",
        "Cookie",
        "Content-Type",
        "a b",
        "",
        "a\\r\\nb",
    ] {
        let error = headers_of(&format!(r#""headers":{{"{name}":"x"}}"#)).unwrap_err();
        assert_eq!(error.param.as_deref(), Some("tools[3].headers"), "{name}");
    }
    for (more, field) in [
        (r#""headers":{"a":"secret\r\nb: c"}"#, "headers"),
        (r#""headers":{"a":7}"#, "headers"),
        (r#""headers":{"a":"1","A":"2"}"#, "headers"),
        (r#""headers":["a"]"#, "headers"),
        (r#""authorization":"secret\n""#, "authorization"),
        (r#""authorization":"secret","headers":{"authorization":"secret"}"#, "authorization"),
    ] {
        let error = headers_of(more).unwrap_err();
        assert_eq!(error.param.as_deref(), Some(&*format!("tools[3].{field}")), "{more}");
        assert!(!error.message.contains("secret"), "{}", error.message);
    }
}

#[test]
fn a_declared_server_gets_the_clients_headers_only_if_the_operator_says_so() {
    let of = |label: &str, more: &str| {
        let named = read_one(&format!(r#"{{"server_label":"{label}",{more}}}"#), &config(McpClients::Declared))?;
        let ServerAt::Http { endpoint, .. } = named.at else { panic!("no HTTP") };
        Ok::<_, ApiError>(endpoint.headers.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>())
    };
    assert_eq!(of("clock", r#""headers":{}"#).unwrap(), ["authorization"]);
    assert_eq!(of("open", r#""headers":{"X-Team":"blue"}"#).unwrap(), ["authorization", "x-team"]);
    for (label, more, field) in [
        ("clock", r#""headers":{"X-Team":"blue"}"#, "headers"),
        ("clock", r#""authorization":"abc""#, "authorization"),
        ("open", r#""authorization":"abc""#, "authorization"),
        ("open", r#""headers":{"Authorization":"abc"}"#, "headers"),
        ("files", r#""headers":{"X-Team":"blue"}"#, "headers"),
    ] {
        let error = of(label, more).unwrap_err();
        assert_eq!(error.param.as_deref(), Some(&*format!("tools[3].{field}")), "{label} {more}");
    }
}

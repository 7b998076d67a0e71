use providers::yaml::{Document, Reader};

use super::*;

const SECRET: &str = "a-very-secret-token";

fn read_text(text: &str) -> (McpConfig, Vec<String>) {
    let document = Document::parse("godex.yaml", text).unwrap();
    let env = |name: &str| match name {
        "KEY" | "GODEX_KEY" => Some(SECRET.to_owned()),
        "PATH" => Some("/bin".to_owned()),
        _ => None,
    };
    let reader = Reader::new(&document, &env);
    let mut keys = Keys::new(reader.root(), "");
    let config = read(&mut keys, &env);
    keys.finish();
    (config, reader.finish().iter().map(ToString::to_string).collect())
}

const WHOLE: &str = "tools:
  mcp:
    clients: allow_list
    allow: ['https://mcp.example.com/', 'https://*.example.org/v1/']
    servers:
      clock:
        url: https://clock.example.com/${KEY}/mcp
        headers: {Authorization: 'Bearer ${KEY}'}
        allowed_tools: [now]
        require_approval: never
        optional: true
        client_headers: true
      files: {command: [mcp-files, --root, /srv], env: {TOKEN: '${KEY}', LEVEL: 3}}
      plain: {url: 'http://127.0.0.1:9000/mcp', require_approval: always}
";

#[test]
fn a_whole_section_is_read_and_printed_without_its_secrets() {
    let (config, problems) = read_text(WHOLE);
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!((config.clients, config.allow.len()), (McpClients::AllowList, 2));
    let [clock, files, plain] = &config.servers[..] else { panic!("{config:?}") };
    let McpAddress::Url { url, headers } = &clock.at else { panic!("{clock:?}") };
    assert_eq!(url, &format!("https://clock.example.com/{SECRET}/mcp"));
    assert_eq!((headers[0].0.as_str(), headers[0].1.expose()), ("authorization", &*format!("Bearer {SECRET}")));
    assert_eq!(clock.allowed_tools, Some(vec!["now".to_owned()]));
    assert_eq!((clock.require_approval, clock.optional), (Some(RequireApproval::Never), true));
    let McpAddress::Command { command, env, inherited } = &files.at else { panic!("{files:?}") };
    assert_eq!(inherited, &[("PATH".to_owned(), "/bin".to_owned())]);
    assert_eq!(command, &["mcp-files", "--root", "/srv"]);
    assert_eq!(
        env.iter().map(|(name, value)| (name.as_str(), value.expose())).collect::<Vec<_>>(),
        [("TOKEN", SECRET), ("LEVEL", "3")]
    );
    assert_eq!((files.require_approval, files.optional, files.client_headers), (None, false, false));
    assert_eq!(plain.require_approval, Some(RequireApproval::Always));
    let printed = print(&config.servers).unwrap();
    assert!(!printed.contains(SECRET) && !format!("{config:?}").contains(SECRET), "{printed}\n{config:?}");
    assert!(
        printed
            .contains(r#"clock: {url: "https://clock.example.com/<redacted>", headers: {authorization: <redacted>}"#)
    );
    // What is printed loads again.
    let indented = printed.replace('\n', "\n      ");
    let (again, problems) = read_text(&format!("tools:\n  mcp:\n    servers:{indented}\n"));
    assert_eq!((problems, print(&again.servers)), (Vec::new(), Some(printed)));
}

#[test]
fn mistakes_are_told_with_their_line_and_without_secrets() {
    for (entry, expected) in [
        ("clock: {}", "godex.yaml:4:7: tools.mcp.servers.clock: needs `url` or `command`"),
        (
            "clock: {url: 'https://a.example', command: [a]}",
            "clock.command: a server has a `url` or a `command`, not both",
        ),
        ("4clock: {url: 'https://a.example'}", "4clock: a label has up to 64 letters"),
        ("clock: {url: 'a.example'}", "clock.url: must be a URL such as"),
        ("clock: {url: 'ftp://a.example'}", "clock.url: must be a URL such as"),
        ("clock: {url: 'https://u:${KEY}@a.example'}", "clock.url: must not hold a user or a password"),
        ("clock: {url: 'https://a.example/#${KEY}'}", "clock.url: must not have a fragment"),
        ("clock: {url: 'http://a.example/${KEY}'}", "clock.url: plain http to a public host"),
        ("clock: {url: 'https://a.example', env: {A: b}}", "clock.env: only a `command` has an environment"),
        ("clock: {command: [a], headers: {a: b}}", "clock.headers: a `command` is not asked over HTTP"),
        ("clock: {command: []}", "clock.command: needs the program"),
        ("clock: {command: 'a b'}", "clock.command: expected a list"),
        ("clock: {command: [a], env: {'A=B': '${KEY}'}}", "this is no name of a variable"),
        ("clock: {url: 'https://a.example', headers: {Host: a}}", "clock.headers.Host: this header cannot be set"),
        ("clock: {url: 'https://a.example', headers: {mcp-session-id: a}}", "this header cannot be set"),
        ("clock: {url: 'https://a.example', headers: {a: \"b\\r\\nc: ${KEY}\"}}", "clock.headers.a: "),
        (
            "clock: {url: 'https://a.example', headers: {a: '${NOT_SET}'}}",
            "the environment variable NOT_SET is not set",
        ),
        (
            "clock: {url: 'https://a.example', require_approval: maybe}",
            "expected one of `always`, `never`, found `maybe`",
        ),
        ("clock: {url: 'https://a.example', optinal: true}", "unknown key `optinal`; did you mean `optional`?"),
        ("clock: https://a.example", "clock: expected a mapping"),
    ] {
        let (_, problems) = read_text(&format!("tools:\n  mcp:\n    servers:\n      {entry}\n"));
        assert!(problems.len() == 1 && problems[0].contains(expected), "{entry}: {problems:?}");
        assert!(problems[0].starts_with("godex.yaml:4:") && !problems[0].contains(SECRET), "{problems:?}");
    }
    for (entry, expected) in [
        ("clients: some", "tools.mcp.clients: expected one of `declared`, `allow_list`, `open`, `off`"),
        ("clients: allow_list", "tools.mcp.clients: `allow_list` needs the list"),
        ("allow: ['https://a.example']", "tools.mcp.allow: has an effect only with `clients: allow_list`"),
        ("{clients: allow_list, allow: []}", "tools.mcp.allow: expected at least one URL"),
        ("{clients: allow_list, allow: ['http://a.example']}", "tools.mcp.allow[0]: must be the beginning of a URL"),
        ("{clients: allow_list, allow: ['https://u:p@a.example']}", "tools.mcp.allow[0]: must be the beginning"),
        ("{clients: allow_list, allow: ['*.example']}", "tools.mcp.allow[0]: must be the beginning"),
    ] {
        let (_, problems) = read_text(&format!("tools:\n  mcp:\n    {entry}\n"));
        assert!(problems.len() == 1 && problems[0].contains(expected), "{entry}: {problems:?}");
    }
}

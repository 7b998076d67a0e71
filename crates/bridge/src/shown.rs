//! What of a tool may be repeated and kept. A tool can hold keys for somebody else's server: they go to whoever calls
//! that server, with every request again, and neither into a response nor into the store. And what of an item may be shown:
//! what godex keeps beside the calls that it ran is for models, not for clients, and none of theirs is taken for it.

use wire::json::{ObjectWriter, Raw};

/// Members of a tool that nobody gets to see again.
const SECRET: [&str; 2] = ["authorization", "headers"];

/// Where a tool runs: its network may hold `domain_secrets`.
const PLACES: [&str; 2] = ["container", "environment"];

/// Whether a request has keys for somebody else's server in its tools.
pub fn holds_secrets(request: Raw<'_>) -> bool {
    let tools = request.get("tools").into_iter().flat_map(Raw::elements);
    tools.chain(request.get("tool_choice")).any(hides)
}

/// Writes a list of tools.
pub fn shown_tools(list: Raw<'_>, out: &mut Vec<u8>) {
    if list.elements().any(hides) {
        write_list(list, out);
    } else {
        out.extend_from_slice(list.as_str().as_bytes());
    }
}

/// Writes one tool, or whatever else has a list of them as its `tools`: a choice among tools, an item.
pub fn shown_tool(tool: Raw<'_>, out: &mut Vec<u8>) {
    if hides(tool) {
        write(tool, out);
    } else {
        out.extend_from_slice(tool.as_str().as_bytes());
    }
}

/// What godex keeps beside an item.
const KEPT: &str = "godex_output";

/// An item as it may be shown, and as a client's own may be kept: without keys, and without what godex keeps beside the
/// calls that it ran. None if it may be as it is, as almost all may.
pub fn shown_item(item: Raw<'_>) -> Option<Vec<u8>> {
    let kind = item.get("type").and_then(Raw::text)?;
    let ran_here = ["mcp_call", "web_search_call", "mcp_approval_request"].iter().any(|name| kind.is(name));
    if ran_here && item.fields().any(|(key, _)| key.is(KEPT)) {
        let mut out = Vec::with_capacity(item.as_str().len());
        without(item, KEPT, &mut out, |_, _| {});
        return Some(out);
    }
    let has_tools = kind.is("additional_tools") || kind.is("tool_search_output");
    (has_tools && hides(item)).then(|| {
        let mut out = Vec::with_capacity(item.as_str().len());
        write(item, &mut out);
        out
    })
}

fn hides(tool: Raw<'_>) -> bool {
    tool.fields().any(|(key, value)| match &*key.decode() {
        "tools" => value.elements().any(hides),
        "server_url" => value.text().is_some_and(|url| origin(&url.decode()).is_some()),
        name if PLACES.contains(&name) => {
            let policy = value.fields().filter(|(key, _)| key.is("network_policy"));
            policy.flat_map(|(_, policy)| policy.fields()).any(|(key, _)| key.is("domain_secrets"))
        }
        name => SECRET.contains(&name),
    })
}

fn write(tool: Raw<'_>, out: &mut Vec<u8>) {
    if tool.fields().next().is_none() {
        return out.extend_from_slice(tool.as_str().as_bytes());
    }
    let mut object = ObjectWriter::new(out);
    for (key, value) in tool.fields() {
        let name = key.decode();
        match &*name {
            "tools" => write_list(value, object.key(&name)),
            "server_url" => match value.text().and_then(|url| origin(&url.decode())) {
                Some(origin) => drop(object.text(&name, &origin)),
                None => drop(object.raw(&name, value)),
            },
            place if PLACES.contains(&place) => {
                without(value, "network_policy", object.key(&name), |policy, out| {
                    without(policy, "domain_secrets", out, |_, _| {});
                });
            }
            secret if SECRET.contains(&secret) => {}
            _ => drop(object.raw(&name, value)),
        }
    }
    object.end();
}

fn write_list(list: Raw<'_>, out: &mut Vec<u8>) {
    if list.elements().next().is_none() {
        return out.extend_from_slice(list.as_str().as_bytes());
    }
    out.push(b'[');
    for (index, tool) in list.elements().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(tool, out);
    }
    out.push(b']');
}

/// An object whose member of that name is written otherwise, or not at all.
fn without(object: Raw<'_>, member: &str, out: &mut Vec<u8>, inner: fn(Raw<'_>, &mut Vec<u8>)) {
    if !object.fields().any(|(key, _)| key.is(member)) {
        return out.extend_from_slice(object.as_str().as_bytes());
    }
    let mut writer = ObjectWriter::new(out);
    for (key, value) in object.fields() {
        if !key.is(member) {
            writer.raw(&key.decode(), value);
            continue;
        }
        let mut written = Vec::new();
        inner(value, &mut written);
        if !written.is_empty() {
            writer.json(member, &written);
        }
    }
    writer.end();
}

/// An address without its path and its user, which may be as good as keys; none if it has neither.
fn origin(url: &str) -> Option<String> {
    const REST: &str = "<redacted>";
    let Some((scheme, rest)) = url.split_once("://") else { return Some(REST.to_owned()) };
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    match path {
        "" | "/" | "/<redacted>" if host == authority => None,
        "" | "/" => Some(format!("{scheme}://{host}{path}")),
        _ => Some(format!("{scheme}://{host}/{REST}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(tool: &str) -> String {
        let mut out = Vec::new();
        shown_tool(Raw::parse(tool).unwrap(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn nothing_secret_is_shown_and_all_else_is() {
        for (given, shown) in [
            (
                r#"{"type":"mcp","server_label":"s","authorization":"KEY","headers":{"x-api-key":"KEY"},"require_approval":"never"}"#,
                r#"{"type":"mcp","server_label":"s","require_approval":"never"}"#,
            ),
            (r#"{"\u0061uthorization":"KEY","type":"mcp"}"#, r#"{"type":"mcp"}"#),
            (r#"{"type":"from_tomorrow","headers":["KEY"],"n": 1e2}"#, r#"{"type":"from_tomorrow","n":1e2}"#),
            (
                r#"{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"},{"type":"mcp","headers":{"a":"KEY"}}]}"#,
                r#"{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"},{"type":"mcp"}]}"#,
            ),
            (
                r#"{"type":"shell","environment":{"type":"container_auto","network_policy":{"type":"allowlist","allowed_domains":["a.b"],"domain_secrets":[{"domain":"a.b","name":"T","value":"KEY"}]}}}"#,
                r#"{"type":"shell","environment":{"type":"container_auto","network_policy":{"type":"allowlist","allowed_domains":["a.b"]}}}"#,
            ),
            (
                r#"{"type":"code_interpreter","container":{"type":"auto","network_policy":{"domain_secrets":["KEY"]}}}"#,
                r#"{"type":"code_interpreter","container":{"type":"auto","network_policy":{}}}"#,
            ),
        ] {
            assert_eq!(tool(given), shown);
        }
    }

    #[test]
    fn what_hides_nothing_stays_as_it_was_written() {
        for tool_text in [
            r#"{"type": "mcp", "server_label":"s", "server_url":"https://mcp.example"}"#,
            r#"{"type":"custom","name":"headers","format":{"authorization": 1}}"#,
            r#"{"type":"function","name":"f","parameters":{"properties":{"authorization":{}, "headers":{}}}}"#,
            r#"{"type":"code_interpreter","container":"cntr_1"}"#,
            r#"{"type":"allowed_tools","mode":"auto","tools":[ {"type":"mcp","server_label":"s"} ]}"#,
            r#"["headers"]"#,
            "7",
        ] {
            assert_eq!(tool(tool_text), tool_text);
        }
    }

    #[test]
    fn an_address_is_shown_up_to_its_host() {
        for (url, shown) in [
            ("https://mcp.example/u/KEY/mcp", Some("https://mcp.example/<redacted>")),
            ("https://mcp.example:8080?key=KEY", Some("https://mcp.example:8080/<redacted>")),
            ("https://me:KEY@mcp.example/", Some("https://mcp.example/")),
            ("https://me:KEY@mcp.example/a@b", Some("https://mcp.example/<redacted>")),
            ("KEY", Some("<redacted>")),
            ("https://mcp.example", None),
            ("https://mcp.example/", None),
            ("https://mcp.example/<redacted>", None),
        ] {
            assert_eq!(origin(url).as_deref(), shown, "{url}");
        }
    }

    #[test]
    fn items_without_tools_are_left_alone() {
        let item = |text: &str| shown_item(Raw::parse(text).unwrap()).map(|out| String::from_utf8(out).unwrap());
        assert_eq!(item(r#"{"type":"message","content":"x","headers":"mine"}"#), None);
        assert_eq!(item(r#"{"type":"additional_tools","tools":[{"type":"mcp","server_label":"s"}]}"#), None);
        assert_eq!(item(r#"{"type":"message","content":"x","godex_output":{}}"#), None);
        assert_eq!(item(r#"{"type":"mcp_call","output":"x"}"#), None);
        assert_eq!(
            item(r#"{"type":"mcp_call","godex_\u006futput":{"call_id":"c"},"output": "x"}"#).as_deref(),
            Some(r#"{"type":"mcp_call","output":"x"}"#)
        );
        assert_eq!(
            item(r#"{"type":"additional_tools","tools":[{"type":"mcp","authorization":"KEY"}]}"#).as_deref(),
            Some(r#"{"type":"additional_tools","tools":[{"type":"mcp"}]}"#)
        );
    }
}

//! JSON as a person would write it: what fits on a line is on one, members keep their order.

use wire::json::{Kind, Raw};

const WIDTH: usize = 110;

pub fn compact(json: &[u8]) -> Vec<u8> {
    // What is not JSON is left as it is: the page shows it.
    let Some(document) = str::from_utf8(json).ok().and_then(|text| Raw::parse(text.trim()).ok()) else {
        return json.to_vec();
    };
    let mut out = String::new();
    write(document, 0, &mut out);
    out.push('\n');
    out.into_bytes()
}

fn write(raw: Raw<'_>, indent: usize, out: &mut String) {
    let line = on_a_line(raw);
    let children: Vec<(String, Raw<'_>)> = match raw.kind() {
        Kind::Object => raw.fields().map(|(key, value)| (format!("\"{}\": ", key.escaped()), value)).collect(),
        Kind::Array => raw.elements().map(|value| (String::new(), value)).collect(),
        _ => Vec::new(),
    };
    if children.is_empty() || indent > 0 && indent + line.len() <= WIDTH {
        return out.push_str(&line);
    }
    let (open, close) = if raw.kind() == Kind::Object { ('{', '}') } else { ('[', ']') };
    out.push(open);
    for (at, (key, value)) in children.into_iter().enumerate() {
        out.push_str(if at > 0 { ",\n" } else { "\n" });
        out.push_str(&" ".repeat(indent + 2));
        out.push_str(&key);
        write(value, indent + 2, out);
    }
    out.push('\n');
    out.push_str(&" ".repeat(indent));
    out.push(close);
}

fn on_a_line(raw: Raw<'_>) -> String {
    match raw.kind() {
        Kind::Object => {
            let member =
                |(key, value): (wire::json::Text<'_>, Raw<'_>)| format!("\"{}\": {}", key.escaped(), on_a_line(value));
            format!("{{{}}}", raw.fields().map(member).collect::<Vec<_>>().join(", "))
        }
        Kind::Array => format!("[{}]", raw.elements().map(on_a_line).collect::<Vec<_>>().join(", ")),
        _ => raw.as_str().to_owned(),
    }
}

#[test]
fn short_values_are_on_one_line() {
    let long = "x".repeat(WIDTH);
    let given = format!(r#"{{"a":[1,{{"b":"{{,"}}],"c":["{long}",{{}}]}}"#);
    let expected = format!("{{\n  \"a\": [1, {{\"b\": \"{{,\"}}],\n  \"c\": [\n    \"{long}\",\n    {{}}\n  ]\n}}\n");
    assert_eq!(String::from_utf8(compact(given.as_bytes())).unwrap(), expected);
}

//! Indents JSON and leaves everything else as it is: members keep the order in which they go over the wire.

pub fn pretty(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() * 2);
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, &byte) in json.iter().enumerate() {
        if quoted {
            out.push(byte);
            quoted = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            continue;
        }
        match byte {
            b'{' | b'[' => {
                out.push(byte);
                depth += 1;
                if !matches!(json.get(at + 1), Some(b'}' | b']')) {
                    line(&mut out, depth);
                }
            }
            b'}' | b']' => {
                depth -= 1;
                if !matches!(out.last(), Some(b'{' | b'[')) {
                    line(&mut out, depth);
                }
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                line(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            b' ' | b'\n' | b'\r' | b'\t' => {}
            _ => {
                out.push(byte);
                quoted = byte == b'"';
            }
        }
    }
    out.push(b'\n');
    out
}

fn line(out: &mut Vec<u8>, depth: usize) {
    out.push(b'\n');
    out.resize(out.len() + 2 * depth, b' ');
}

#[test]
fn strings_are_left_alone() {
    let given = br#"{"a":[],"b":[1,{"c":"x{,:\"}\\"}],"d":{}}"#;
    let expected =
        "{\n  \"a\": [],\n  \"b\": [\n    1,\n    {\n      \"c\": \"x{,:\\\"}\\\\\"\n    }\n  ],\n  \"d\": {}\n}\n";
    assert_eq!(String::from_utf8(pretty(given)).unwrap(), expected);
}

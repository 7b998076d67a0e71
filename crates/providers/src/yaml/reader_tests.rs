use super::*;

fn env(name: &str) -> Option<String> {
    match name {
        "PORT" => Some("80".to_owned()),
        "SECRET" => Some("hunter2".to_owned()),
        _ => None,
    }
}

/// Reads a small schema and returns the problems.
fn problems(text: &str) -> Vec<String> {
    let document = Document::parse("f.yaml", text).unwrap();
    let reader = Reader::new(&document, &env);
    let mut root = reader.root();
    root.read("name", Field::text);
    root.read("port", |field| field.integer(1..=65535));
    root.read("on", Field::boolean);
    root.read("level", |field| field.choice(&["info", "debug"], |name| name));
    root.read("list", Field::texts);
    let mut nested = root.section("nested");
    nested.read("api_key", Field::string);
    nested.read("base_url", Field::string);
    nested.finish();
    root.finish();
    reader.finish().iter().map(ToString::to_string).collect()
}

#[test]
fn reads_what_is_right() {
    for text in [
        "",
        "name: x\nport: 5678\non: true\nlevel: debug\nlist: [a, 4]\nnested: {api_key: k}",
        "port: ${PORT}\nname: ${NAME:-n}\nnested:\n  api_key: ${SECRET}",
        "port: '80'\nname: 4\nnested:\nlist: ~",
    ] {
        assert_eq!(problems(text), [""; 0], "{text}");
    }
}

#[test]
fn reports_everything_at_once() {
    let text = "\
name: true
port: 99999
on: yes
level: inof
list: x
prot: 1
nested:
  api_kye: ${SECRET}
  base_url: ${NOWHERE}
  something_else: 1
";
    let expected = [
        "f.yaml:1:7: name: expected a string, found `true`",
        "f.yaml:2:7: port: expected a whole number from 1 to 65535, found `99999`",
        "f.yaml:3:5: on: expected true or false, found `yes`",
        "f.yaml:4:8: level: expected one of `info`, `debug`, found `inof`; did you mean `info`?",
        "f.yaml:5:7: list: expected a list, found `x`",
        "f.yaml:6:1: unknown key `prot`; did you mean `port`?",
        "f.yaml:8:3: nested: unknown key `api_kye`; did you mean `api_key`?",
        "f.yaml:9:13: nested.base_url: the environment variable NOWHERE is not set; set it, or give a default: `${NOWHERE:-...}`",
        "f.yaml:10:3: nested: unknown key `something_else`; known keys: `api_key`, `base_url`",
    ];
    assert_eq!(problems(text), expected);
}

#[test]
fn never_shows_what_a_variable_holds() {
    for text in
        ["port: ${SECRET}", "on: ${SECRET}", "level: ${SECRET}", "nested: ${SECRET}", "list: [[\"a${SECRET}\"]]"]
    {
        let found = problems(text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(!found[0].contains("hunter2"), "{found:?}");
    }
}

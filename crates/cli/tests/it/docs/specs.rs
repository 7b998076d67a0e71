//! The tables of `docs/specs.md`.

use providers::{SpecKey, spec_keys};

use super::{check, code, table};

/// What a key takes, a word to a line where words are explained.
fn takes(key: &SpecKey) -> String {
    let words = &key.takes.words;
    if words.is_empty() {
        return key.takes.form.clone();
    }
    if words.iter().all(|(_, about)| about.is_empty()) {
        let names: Vec<String> = words.iter().map(|(name, _)| code(name)).collect();
        return format!("{} {}", key.takes.form, names.join(", "));
    }
    let word = |(name, about): &(&str, &str)| match *about {
        "" => format!("<br>{}", code(name)),
        about => format!("<br>{}: {about}", code(name)),
    };
    key.takes.form.clone() + &words.iter().map(word).collect::<Vec<_>>().concat()
}

/// The groups below `request`.
const GROUPS: &[&str] = &["messages", "content", "tools", "reasoning", "options", "native", "blocks"];

#[test]
fn spec_keys_are_documented() {
    let keys = spec_keys();
    let rows = |wanted: &dyn Fn(&SpecKey) -> bool| {
        let rows: Vec<_> = keys
            .iter()
            .filter(|key| wanted(key))
            .map(|key| [code(&key.path), takes(key), key.about.to_owned()])
            .collect();
        table(["key", "takes", "what it says"], rows)
    };
    let below = |prefix: &'static str| rows(&move |key| key.path.starts_with(prefix));
    for key in &keys {
        let group = key.path.strip_prefix("request.").and_then(|path| path.split('.').next());
        assert!(group.is_none_or(|group| GROUPS.contains(&group)), "{} is in no table", key.path);
    }
    let tables = [
        ("provider", rows(&|key| !key.of_models && !key.path.starts_with("discovery."))),
        ("model", rows(&|key| key.of_models && !key.path.contains('.'))),
        ("request.messages", below("request.messages.")),
        ("request.content", below("request.content.")),
        ("request.tools", below("request.tools.")),
        ("request.reasoning", below("request.reasoning.")),
        ("request.options", below("request.options.")),
        ("request.native", below("request.native.")),
        ("request.blocks", below("request.blocks.")),
        ("answer", below("answer.")),
        ("catalog", below("catalog.")),
        ("discovery", below("discovery.")),
    ];
    check("docs/specs.md", &tables);
}

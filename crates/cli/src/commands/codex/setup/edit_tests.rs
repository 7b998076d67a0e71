use super::*;

fn provider() -> Settings {
    vec![("name", Value::from("godex")), ("supports_websockets", Value::from(true))]
}

/// Configurations as people have them.
const CORPUS: &[&str] = &[
    "",
    "\n",
    "# only a comment",
    "# only a comment\n",
    "model = \"gpt-5\"",
    "model = \"gpt-5\" # my favourite\n",
    "model = \"gpt-5\"\r\nmodel_provider = 'openai'\r\n\r\n[features]\r\ngoals = false\r\n",
    "\u{feff}model = \"gpt-5\"\n",
    "\u{feff}[features]\na = 1\n",
    "# about\n\n[features]\ngoals = false\n\n\n",
    "model_providers = { other = { name = \"x\", base_url = \"http://x\" } }\n",
    "model_providers = {}\n[features]\na=1",
    "model_providers = {other={name='x'}} # inline\nmodel = 'm'\n",
    "model_providers.other.name = \"x\"\nmodel_providers.other.base_url = \"http://x\"\n",
    "[model_providers]\n[model_providers.other]\nname = \"x\"\n[projects.\"/home/me\"]\ntrust_level = \"trusted\"\n",
    "[model_providers.other]\nname = \"x\"\n  # indented\n",
    "model = \"\"\"\na\nb\"\"\"\nweb_search = \"live\"\n[profiles.mine]\nmodel = \"m\"\n",
    "[profiles.mine]\nmodel = \"m\"",
    "[[hooks]]\nname = \"a\"\n[[hooks]]\nname = \"b\"",
    "profiles = { p = { model = \"x\" } }\n",
    "profiles = {p={model='x'},q={}}\r\nmodel_providers = {}\r\n",
    "# godex> my own note\nmodel = \"a\"\n# godex> was: never\n[profiles.mine]\nmodel = \"m\"\n# godex> end\n",
    "a.b = 1\n[x]\ny = [\n 1,\n 2,\n]\n",
];

fn with_everything(text: &str) -> String {
    let text = set_root(text, "model", &Value::from("demo")).unwrap();
    let text = set_root(&text, "model_provider", &Value::from("godex")).unwrap();
    let text = set_root(&text, "web_search", &Value::from("disabled")).unwrap();
    let text = set_table(&text, "model_providers", "godex", &provider()).unwrap();
    set_table(&text, "profiles", "godex", &vec![("model", Value::from("demo"))]).unwrap()
}

fn without_everything(text: &str) -> String {
    let mut text = text.to_owned();
    for name in own_tables(&text, "profiles").unwrap() {
        text = unset_table(&text, "profiles", &name).unwrap();
    }
    let text = unset_table(&text, "model_providers", "godex").unwrap();
    ["web_search", "model_provider", "model"].iter().fold(text, |text, key| unset_root(&text, key).unwrap())
}

#[test]
fn what_was_added_is_taken_out_to_the_last_byte() {
    for text in CORPUS {
        let changed = with_everything(text);
        let document = parse(&changed).unwrap_or_else(|error| panic!("{text:?}: {error}\n{changed}"));
        assert_eq!(document["model"].as_str(), Some("demo"), "{changed}");
        assert_eq!(document["model_providers"]["godex"]["name"].as_str(), Some("godex"), "{changed}");
        assert_eq!(document["profiles"]["godex"]["model"].as_str(), Some("demo"), "{changed}");
        assert_eq!(with_everything(&changed), changed, "a second time changes nothing");
        assert_eq!(without_everything(&changed), *text, "\n{changed}");
        assert!(!text.contains("\r\n") || changed.lines().count() == changed.matches("\r\n").count(), "{changed:?}");
    }
}

#[test]
fn every_line_that_was_there_stays_in_its_order() {
    for text in CORPUS {
        let changed = with_everything(text);
        let mut rest =
            changed.trim_start_matches(BYTE_ORDER_MARK).lines().map(|line| line.strip_prefix(WAS).unwrap_or(line));
        for line in text.trim_start_matches(BYTE_ORDER_MARK).lines().filter(|line| !line.contains("s = {")) {
            assert!(rest.any(|found| found == line.strip_prefix(WAS).unwrap_or(line)), "{line:?} in\n{changed}");
        }
    }
}

/// Codex writes into the same file: what it adds stays, wherever it puts it.
#[test]
fn what_others_add_later_stays() {
    for text in CORPUS {
        let changed = with_everything(text);
        let mut document: toml_edit::DocumentMut = changed.parse().unwrap();
        document["projects"]["/work"]["trust_level"] = toml_edit::value("trusted");
        document["model_reasoning_effort"] = toml_edit::value("high");
        let later = document.to_string();
        let left = without_everything(&later);
        let left = parse(&left).unwrap();
        assert_eq!(left["projects"]["/work"]["trust_level"].as_str(), Some("trusted"), "{later}");
        assert_eq!(left["model_reasoning_effort"].as_str(), Some("high"), "{later}");
        assert!(left.get("model_providers").and_then(|providers| providers.get("godex")).is_none(), "{later}");
        let before = parse(text).unwrap();
        for key in ["model", "model_provider", "web_search"] {
            let value = |document: &Document<&str>| document.get(key).and_then(Item::as_str).map(str::to_owned);
            assert_eq!(value(&left), value(&before), "{key}\n{later}");
        }
    }
}

#[test]
fn a_value_that_changes_takes_the_place_of_the_old_one() {
    for text in CORPUS {
        let first = set_table(text, "model_providers", "godex", &provider()).unwrap();
        let other = vec![("name", Value::from("godex")), ("base_url", Value::from("http://b"))];
        let second = set_table(&first, "model_providers", "godex", &other).unwrap();
        assert_eq!(second.matches(UNDO).count(), 1, "{second}");
        assert_eq!(parse(&second).unwrap()["model_providers"]["godex"]["base_url"].as_str(), Some("http://b"));
        assert_eq!(unset_table(&second, "model_providers", "godex").unwrap(), *text);
        let root = set_root(&set_root(text, "model", &Value::from("a")).unwrap(), "model", &Value::from("b")).unwrap();
        assert_eq!(unset_root(&root, "model").unwrap(), *text, "\n{root}");
    }
}

#[test]
fn a_value_that_somebody_changed_stays() {
    for text in CORPUS {
        let set = set_root(text, "model", &Value::from("demo")).unwrap();
        assert!(!is_root_changed(&set, "model"), "{set}");
        let changed = set.replace("\nmodel = \"demo\"", "\nmodel = \"my-new\"");
        assert!(is_root_changed(&changed, "model"), "{changed}");
        let left = unset_root(&changed, "model").unwrap();
        assert_eq!(parse(&left).unwrap()["model"].as_str(), Some("my-new"), "{left}");
        assert!(!left.contains(SET), "{left}");
        let again = set_root(&changed, "model", &Value::from("demo")).unwrap();
        assert_eq!(unset_root(&again, "model").unwrap(), left, "{again}");
    }
}

#[test]
fn what_is_not_ours_is_refused_with_its_line() {
    for (text, expected) in [
        ("a = 1\n[model_providers.godex]\nname = \"mine\"\n", "line 2: there is a `model_providers.godex`"),
        ("\nmodel_providers = { godex = { name = \"x\" } }\n", "line 2: there is a `model_providers.godex`"),
        ("[model_providers]\na = {}\ngodex = { name = \"x\" }\n", "line 3: there is a `model_providers.godex`"),
        ("model_providers.godex.name = \"x\"\n", "line 1: there is a `model_providers.godex`"),
        ("[x]\n[model_providers.godex.http_headers]\na = \"b\"\n", "line 2: there is a `model_providers.godex`"),
        ("model_providers = 3\n", "line 1: `model_providers` is not a table"),
        ("ok = 1\nbroken = \n", "line 2: this is not TOML"),
        ("a = 1\na = 2\n", "line 2: this is not TOML"),
        ("[open\n", "line 1: this is not TOML"),
    ] {
        let error = set_table(text, "model_providers", "godex", &provider()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text:?}: {error}");
        assert_eq!(unset_table(text, "model_providers", "godex").unwrap(), text);
    }
    let error = set_root("x = 1\n[model]\na = 1\n", "model", &Value::from("m")).unwrap_err().to_string();
    assert!(error.starts_with("line 2: `model` is a table"), "{error}");
}

#[test]
fn tables_below_ours_go_with_it_and_nothing_between() {
    let text = set_table("", "model_providers", "godex", &provider()).unwrap();
    let text = format!("{text}\n[other]\na = 1\n[model_providers.godex.http_headers]\nx = \"y\"\n[last]\nb = 2\n");
    let left = unset_table(&text, "model_providers", "godex").unwrap();
    assert_eq!(left, "\n[other]\na = 1\n[last]\nb = 2\n");
}

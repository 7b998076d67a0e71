//! `godex codex setup`, and the way back.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::Home;
use super::terminal::Terminal;

const CONFIG: &str = "session: {backend: memory}\nserver: {port: 4567}\n";

fn set_up(home: &Home, args: &[&str]) -> (Option<i32>, String, String) {
    home.godex(&[&["codex", "setup"][..], args].concat())
}

#[test]
fn on_a_terminal_it_shows_asks_and_can_be_undone() {
    let home = Home::new(CONFIG);
    let ask = |args: &[&str], answer: &str| {
        let mut terminal = Terminal::start(&home.command(&[&["codex", "setup"][..], args].concat()));
        let shown = terminal.until("Write this? [y/N] ");
        terminal.keys(answer);
        let (rest, status) = terminal.end();
        (shown, rest, status.code())
    };
    let (shown, rest, code) = ask(&[], "n\n");
    assert_eq!(code, Some(1), "{rest}");
    assert!(shown.contains("+[model_providers.godex]") && shown.contains("+base_url = \"http://127.0.0.1:4567/v1\""));
    assert!(!home.codex_home().exists());
    let (_, rest, code) = ask(&[], "y\n");
    assert_eq!(code, Some(0), "{rest}");
    assert!(rest.contains("codex --profile godex") && rest.contains("godex codex setup --remove"), "{rest}");
    let names: Vec<String> = home.codex_files().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["config.toml", "godex-models.json", "godex.config.toml"]);
    let config = home.read("config.toml");
    assert!(config.contains("undo: godex codex setup --remove") && !config.contains("env_key"), "{config}");
    let profile = home.read("godex.config.toml");
    for line in ["model = \"demo\"", "model_provider = \"godex\"", "web_search = \"disabled\""] {
        assert!(profile.lines().any(|found| found == line), "{profile}");
    }
    let (code, out, _) = set_up(&home, &[]);
    assert!(code == Some(0) && out.starts_with("nothing to change"), "{out}");
    let (_, rest, code) = ask(&["--remove"], "y\n");
    assert_eq!((code, home.codex_files().len()), (Some(0), 0), "{rest}");
    assert!(set_up(&home, &["--remove"]).1.starts_with("nothing to change"));
}

const CORPUS: &[&str] = &[
    "",
    "# mine\n\nmodel = \"gpt-5\" # favourite\n\n[features]\ngoals = false\n",
    "model = 'gpt-5'\r\n[projects.\"/work\"]\r\ntrust_level = \"trusted\"\r\n",
    "model_providers = { other = { name = \"x\", base_url = \"http://x/v1\" } }\nopenai_base_url = \"http://y\"",
    "[profiles.mine]\nmodel = \"m\"\n\n[model_providers.other]\nname = \"x\"\n# the end",
    "model_providers.other.name = 'x'\nweb_search = \"live\"\nmodel_provider = \"other\"\n",
];

#[test]
fn whatever_was_there_stays_and_comes_back_to_the_last_byte() {
    for (text, extra) in CORPUS.iter().flat_map(|text| [(text, &[][..]), (text, &["--default"][..])]) {
        let home = Home::new(CONFIG);
        home.write("config.toml", text);
        home.write("auth.json", "{\"tokens\": \"mine\"}");
        let path = home.codex_home().join("config.toml");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let before = home.codex_files();
        let (code, out, err) = set_up(&home, &[&["--yes"], extra].concat());
        assert_eq!(code, Some(0), "{text:?}: {err}");
        assert!(out.contains("+++ "), "{out}");
        let changed = home.read("config.toml");
        let document = changed.parse::<toml_edit::DocumentMut>().unwrap();
        assert_eq!(document["model_providers"]["godex"]["wire_api"].as_str(), Some("responses"));
        assert_eq!(document.get("model").and_then(|m| m.as_str()) == Some("demo"), !extra.is_empty(), "{changed}");
        assert_eq!(home.read("config.toml.godex-backup-1"), **text);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        let (_, out, _) = set_up(&home, &[&["--yes"], extra].concat());
        assert!(out.starts_with("nothing to change"), "{text:?}: {out}");
        let (code, _, err) = set_up(&home, &["--yes", "--remove"]);
        assert_eq!(code, Some(0), "{err}");
        assert_eq!(home.codex_files(), before, "{text:?}\n{changed}");
    }
}

/// For a Codex whose profiles are in the same file.
#[test]
fn profiles_of_an_inline_table_come_back_to_the_last_byte() {
    let home = Home::new(CONFIG);
    home.install("0.133.0");
    home.write("config.toml", "profiles = { p = { model = \"x\" } }\n");
    let before = home.codex_files();
    for args in [&["--yes", "--profile", "first"][..], &["--yes"]] {
        assert_eq!(set_up(&home, args).0, Some(0));
        let config = home.read("config.toml").parse::<toml_edit::DocumentMut>().unwrap();
        assert_eq!(config["profiles"]["p"]["model"].as_str(), Some("x"));
        assert_eq!(config["profiles"].as_table_like().unwrap().len(), 2);
    }
    assert!(set_up(&home, &["--yes"]).1.starts_with("nothing to change"));
    assert_eq!(set_up(&home, &["--yes", "--remove"]).0, Some(0));
    assert_eq!(home.read("config.toml").as_bytes(), before[0].1);
}

/// Nothing that somebody wrote by hand is lost.
#[test]
fn what_was_edited_by_hand_is_kept() {
    let url = "base_url = \"http://127.0.0.1:4567/v1\"";
    for (from, to) in [
        ("supports_websockets = true\n", "supports_websockets = true\nrequest_max_retries = 9\n"),
        ("supports_websockets = true\n", "supports_websockets = true\n[model_providers.godex.http_headers]\na = 'b'\n"),
        (url, "base_url = \"https://godex.example/v1\""),
        (url, &format!("{url} # mine")),
    ] {
        let home = Home::new(CONFIG);
        home.write("config.toml", "# mine\n");
        set_up(&home, &["--yes"]);
        let edited = home.read("config.toml").replace(from, to);
        home.write("config.toml", &edited);
        let (code, out, err) = set_up(&home, &["--yes", "--remove"]);
        assert_eq!((code, home.read("config.toml").as_str()), (Some(0), "# mine\n"), "{err}");
        let kept = home.codex_files().into_iter().find(|(_, text)| *text == edited.as_bytes());
        let (name, _) = kept.unwrap_or_else(|| panic!("{to}: no copy\n{out}"));
        assert!(out.contains(&format!("{name} (as it was)")), "{out}");
    }
    let home = Home::new(CONFIG);
    home.write("config.toml", "model = \"old\"\n");
    set_up(&home, &["--yes", "--default"]);
    home.write("config.toml", &home.read("config.toml").replace("\nmodel = \"demo\"", "\nmodel = \"my-new\""));
    let (_, out, _) = set_up(&home, &["--yes", "--remove"]);
    assert_eq!(home.read("config.toml"), "model = \"my-new\"\n");
    assert!(out.contains("left     `model` of "), "{out}");
}

#[test]
fn a_catalogue_that_is_still_named_or_is_not_ours_stays() {
    let home = Home::new(CONFIG);
    set_up(&home, &["--yes", "--default"]);
    for name in ["config.toml", "godex.config.toml"] {
        let text = home.read(name);
        let bare: String = text.split_inclusive('\n').filter(|line| !line.starts_with('#')).collect();
        home.write(name, &bare);
    }
    let (code, out, _) = set_up(&home, &["--yes", "--remove"]);
    assert!(code == Some(0) && out.contains("config.toml names it") && out.contains("no comment says"), "{out}");
    assert!(home.codex_home().join("godex-models.json").exists());
    home.write("config.toml", "");
    assert!(set_up(&home, &["--yes", "--remove"]).1.contains("godex.config.toml names it"));
    fs::remove_file(home.codex_home().join("godex.config.toml")).unwrap();
    set_up(&home, &["--yes", "--remove"]);
    assert!(!home.codex_home().join("godex-models.json").exists());
    for foreign in ["{\"mine\": 1}", "{\"models\": [{\"slug\": \"m\"}]}", "text"] {
        home.write("godex-models.json", foreign);
        let (code, _, err) = set_up(&home, &["--yes"]);
        assert!(code == Some(1) && err.contains("that godex did not write"), "{err}");
        let (code, out, _) = set_up(&home, &["--yes", "--remove"]);
        assert!(code == Some(0) && out.contains("godex did not write it"), "{out}");
        assert_eq!(home.read("godex-models.json"), foreign);
    }
}

#[test]
fn a_relative_folder_is_written_as_an_absolute_one() {
    let home = Home::new(CONFIG);
    let status = home.command(&["codex", "setup", "--yes"]).env("CODEX_HOME", "cx").output().unwrap().status;
    assert!(status.success());
    let profile = fs::read_to_string(home.path().join("cx/godex.config.toml")).unwrap();
    let profile = profile.parse::<toml_edit::DocumentMut>().unwrap();
    let named = std::path::Path::new(profile["model_catalog_json"].as_str().unwrap());
    assert!(named.is_absolute() && named.exists(), "{profile}");
}

/// As Codex does it when a folder is trusted.
fn trust(text: &str) -> String {
    let mut document = text.parse::<toml_edit::DocumentMut>().unwrap();
    let mut folder = toml_edit::Table::new();
    folder["trust_level"] = toml_edit::value("trusted");
    let mut projects = toml_edit::Table::new();
    projects.set_implicit(true);
    projects["/work"] = toml_edit::Item::Table(folder);
    document["projects"] = toml_edit::Item::Table(projects);
    document.to_string()
}

#[test]
fn what_codex_wrote_meanwhile_is_kept() {
    let home = Home::new(CONFIG);
    home.write("config.toml", "model = \"gpt-5\"\n");
    set_up(&home, &["--yes", "--default"]);
    home.write("config.toml", &trust(&home.read("config.toml")));
    let (_, out, _) = set_up(&home, &["--yes", "--default"]);
    assert!(out.starts_with("nothing to change"), "{out}");
    home.write("godex.config.toml", &trust(&home.read("godex.config.toml")));
    let (code, out, err) = set_up(&home, &["--yes", "--model", "demo/other"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(home.read("godex.config.toml").contains("trust_level"), "{out}");
    assert!(home.read("godex.config.toml").contains("model = \"demo/other\""), "{out}");
    set_up(&home, &["--yes", "--remove"]);
    assert_eq!(home.read("config.toml"), "model = \"gpt-5\"\n\n[projects.\"/work\"]\ntrust_level = \"trusted\"\n");
    let kept = home.codex_files().into_iter().any(|(name, text)| {
        name.starts_with("godex.config.toml.godex-backup") && String::from_utf8_lossy(&text).contains("demo/other")
    });
    assert!(kept && !home.codex_home().join("godex.config.toml").exists());
}

#[test]
fn what_cannot_be_done_is_refused_and_changes_nothing() {
    for (name, text, args, expected) in [
        ("config.toml", "a = 1\nbroken = \n", &["--yes"][..], "line 2: this is not TOML"),
        (
            "config.toml",
            "[model_providers.godex]\nname = \"mine\"\n",
            &["--yes"],
            "line 1: there is a `model_providers.godex`",
        ),
        (
            "config.toml",
            "a = 1\n\n[model_providers.godex]\nname = \"mine\"\n",
            &["--yes", "--default"],
            "line 3: there is a `model_providers.godex`",
        ),
        ("config.toml", "[profiles.godex]\nmodel = \"m\"\n", &["--yes"], "there is an old profile `godex`"),
        ("godex.config.toml", "model = \"mine\"\n", &["--yes"], "there is such a profile"),
        ("config.toml", "\n", &[], "there is no terminal to ask on: add --yes"),
    ] {
        let home = Home::new(CONFIG);
        home.write(name, text);
        let before = home.codex_files();
        let (code, _, err) = set_up(&home, args);
        assert!(code == Some(1) && err.contains(expected), "{text:?}: {err}");
        assert_eq!(home.codex_files(), before);
    }
    let home = Home::new(CONFIG);
    home.write("config.toml", "a = 1\n");
    let path = home.codex_home().join("config.toml");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let (code, _, err) = set_up(&home, &["--yes"]);
    assert!(code == Some(1) && err.contains("config.toml is read-only"), "{err}");
    assert_eq!(home.codex_files().len(), 1);
    let pipe = Home::new(CONFIG);
    fs::create_dir_all(pipe.codex_home()).unwrap();
    let made = std::process::Command::new("mkfifo").arg(pipe.codex_home().join("config.toml")).status().unwrap();
    assert!(made.success());
    for args in [&["codex", "setup", "--yes"][..], &["codex", "setup", "--yes", "--remove"], &["codex", "doctor"]] {
        let (code, out, err) = pipe.godex(args);
        assert!(code == Some(1) && (out + &err).contains("is not a regular file"), "{err}");
    }
    let (code, out, _) = set_up(&home, &["--dry-run"]);
    assert!(code == Some(0) && out.contains("+[model_providers.godex]"), "{out}");
    assert_eq!(set_up(&home, &["--profile", "a/b"]).0, Some(2));
}

/// Dotfiles are often links into a repository.
#[test]
fn a_link_stays_a_link() {
    let home = Home::new(CONFIG);
    let real = home.path().join("dotfiles.toml");
    fs::write(&real, "# mine\n").unwrap();
    fs::create_dir_all(home.codex_home()).unwrap();
    let link = home.codex_home().join("config.toml");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    set_up(&home, &["--yes"]);
    assert!(fs::read_link(&link).is_ok() && fs::read_to_string(&real).unwrap().contains("[model_providers.godex]"));
    set_up(&home, &["--yes", "--remove"]);
    assert!(fs::read_link(&link).is_ok() && fs::read_to_string(&real).unwrap() == "# mine\n");
}

#[test]
fn a_profile_is_written_as_the_installed_codex_reads_it() {
    let home = Home::new(CONFIG);
    home.write("config.toml", "# mine\n");
    home.install("0.133.0");
    let (code, _, err) = set_up(&home, &["--yes"]);
    assert_eq!(code, Some(0), "{err}");
    let config = home.read("config.toml").parse::<toml_edit::DocumentMut>().unwrap();
    assert_eq!(config["profiles"]["godex"]["model_provider"].as_str(), Some("godex"));
    assert!(!home.codex_home().join("godex.config.toml").exists());
    home.install("0.134.0");
    assert_eq!(set_up(&home, &["--yes"]).0, Some(0));
    assert!(!home.read("config.toml").contains("profiles") && home.codex_home().join("godex.config.toml").exists());
    home.install("0.133.0");
    set_up(&home, &["--yes", "--remove"]);
    assert_eq!(home.read("config.toml"), "# mine\n");
}

#[test]
fn a_key_is_only_asked_for_where_there_is_one() {
    let home = Home::new(CONFIG);
    let status = home.command(&["codex", "setup", "--yes"]).env("GODEX_API_KEY", "k").output().unwrap().status;
    assert!(status.success());
    let config = home.read("config.toml");
    assert!(config.contains("env_key = \"GODEX_API_KEY\"") && !config.contains("\"k\""), "{config}");
    let status = home.command(&["codex", "setup", "--yes"]).output().unwrap().status;
    assert!(status.success() && !home.read("config.toml").contains("env_key"), "{}", home.read("config.toml"));
}

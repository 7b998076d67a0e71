//! Which file is the configuration, and its text.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{Origin, Problem, Sources};

/// What was read, the name that problems show, and the text (empty for the built-in defaults).
pub(super) fn locate(sources: &Sources<'_>) -> Result<(Origin, String, String), Problem> {
    if let Some(given) = sources.config_path {
        let path = sources.cwd.join(given);
        let name = given.display().to_string();
        return match read(&path, &name)? {
            Some(text) => Ok((Origin::File(path), name, text)),
            None => Err(problem(&name, "there is no such file", Some("the path came from --config"))),
        };
    }
    let local = (sources.cwd.join("godex.yaml"), "godex.yaml".to_owned());
    let home = sources.home.map(|home| home.join(".godex").join("config.yaml"));
    let home = home.map(|path| (path.clone(), path.display().to_string()));
    for (path, name) in [Some(local), home].into_iter().flatten() {
        if let Some(text) = read(&path, &name)? {
            return Ok((Origin::File(path), name, text));
        }
    }
    Ok((Origin::Defaults, "built-in defaults".to_owned(), String::new()))
}

/// The text of a file; None when it does not exist.
pub(super) fn read(path: &Path, name: &str) -> Result<Option<String>, Problem> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == ErrorKind::IsADirectory => {
            return Err(problem(name, "is a directory, not a file", None));
        }
        Err(error) => return Err(problem(name, &format!("cannot be read: {error}"), None)),
    };
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let line = good.split(|byte| *byte == b'\n').count();
        problem(name, &format!("line {line} is not UTF-8"), Some("save the file as UTF-8"))
    })?;
    Ok(Some(text))
}

/// `~/` is the home directory; other relative paths are seen from where godex was started.
pub(super) fn expand(path: &str, sources: &Sources<'_>) -> PathBuf {
    expand_from(path, sources.cwd, sources)
}

/// The same, seen from another folder.
pub(super) fn expand_from(path: &str, folder: &Path, sources: &Sources<'_>) -> PathBuf {
    match path.strip_prefix("~/") {
        // Who has no home is at home here.
        Some(rest) => sources.home.unwrap_or(sources.cwd).join(rest),
        None => folder.join(path),
    }
}

fn problem(name: &str, message: &str, help: Option<&str>) -> Problem {
    Problem {
        file: name.to_owned(),
        position: None,
        path: String::new(),
        message: message.to_owned(),
        help: help.map(str::to_owned),
    }
}

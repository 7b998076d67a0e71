//! Where a value came from, so that a problem with it is reported there: flag, variable or line.

use providers::yaml::{Field, Reader};

use super::{Problem, Sources};

/// The source of one value.
#[derive(Debug)]
pub(super) enum Place<'r> {
    Flag(&'static str),
    Variable(&'static str),
    File(Field<'r>),
    Default(&'static str),
}

impl Place<'_> {
    pub(super) fn problem(&self, reader: &Reader<'_>, message: impl Into<String>, help: Option<String>) {
        let (file, path) = match self {
            Self::File(field) => return field.problem(message, help),
            Self::Default(path) => return reader.problem(path, message, help),
            Self::Flag(flag) => ("command line", *flag),
            Self::Variable(name) => ("environment", *name),
        };
        let (file, path) = (file.to_owned(), path.to_owned());
        reader.report(Problem { file, position: None, path, message: message.into(), help });
    }
}

/// An environment variable, read by `read`; empty counts as unset, and what cannot be read is a problem.
pub(super) fn variable<T>(
    reader: &Reader<'_>,
    sources: &Sources<'_>,
    name: &'static str,
    expected: &str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Option<T> {
    let text = (sources.env)(name).filter(|text| !text.trim().is_empty())?;
    let value = read(text.trim());
    if value.is_none() {
        Place::Variable(name).problem(reader, format!("expected {expected}"), None);
    }
    value
}

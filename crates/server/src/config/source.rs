//! Where a value came from, so that a problem with it is reported there: flag, variable or line.

use providers::yaml::{Field, Reader};

use super::{Problem, Sources};

/// The source of one value.
#[derive(Debug)]
pub(super) enum ValueSource<'r> {
    Variable(&'static str),
    File(Field<'r>),
    Default(&'static str),
}

impl ValueSource<'_> {
    pub(super) fn problem(&self, reader: &Reader<'_>, message: impl Into<String>, help: Option<String>) {
        let (file, path) = match self {
            Self::File(field) => return field.problem(message, help),
            Self::Default(path) => return reader.problem(path, message, help),
            Self::Variable(name) => ("environment", *name),
        };
        let (file, path) = (file.to_owned(), path.to_owned());
        reader.report(Problem { file, position: None, path, message: message.into(), help });
    }
}

/// A variable of the environment that says the same as a key, and wins over it.
#[derive(Debug)]
pub struct Variable {
    pub name: &'static str,
    /// The key.
    pub key: &'static str,
    /// What it takes, in words.
    pub expected: &'static str,
}

pub(super) static HOST: Variable = Variable { name: "GODEX_HOST", key: "server.host", expected: "a host" };
pub(super) static PORT: Variable =
    Variable { name: "GODEX_PORT", key: "server.port", expected: "a port from 0 to 65535" };
pub(super) static DEFAULT_PROVIDER: Variable =
    Variable { name: "GODEX_DEFAULT_PROVIDER", key: "default_provider", expected: "a provider's name" };
pub(super) static LOG_LEVEL: Variable =
    Variable { name: "GODEX_LOG_LEVEL", key: "logging.level", expected: "a log level (trace to error)" };

pub(super) static OTEL_ENDPOINT: Variable = Variable {
    name: "OTEL_EXPORTER_OTLP_ENDPOINT",
    key: "otel.endpoint",
    expected: "an http or https URL, such as http://127.0.0.1:4318",
};
pub(super) static OTEL_HEADERS: Variable = Variable {
    name: "OTEL_EXPORTER_OTLP_HEADERS",
    key: "otel.headers",
    expected: "headers as name=value, separated by commas",
};
pub(super) static OTEL_SERVICE_NAME: Variable =
    Variable { name: "OTEL_SERVICE_NAME", key: "otel.service_name", expected: "a name" };

/// Every one.
pub static VARIABLES: &[&Variable] =
    &[&HOST, &PORT, &DEFAULT_PROVIDER, &LOG_LEVEL, &OTEL_ENDPOINT, &OTEL_HEADERS, &OTEL_SERVICE_NAME];

impl Variable {
    /// What the environment says, read by `read`; empty counts as unset, and what cannot be read is a problem.
    pub(super) fn find<T>(
        &self,
        reader: &Reader<'_>,
        sources: &Sources<'_>,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let text = (sources.env)(self.name).filter(|text| !text.trim().is_empty())?;
        let value = read(text.trim());
        if value.is_none() {
            ValueSource::Variable(self.name).problem(reader, format!("expected {}", self.expected), None);
        }
        value
    }
}

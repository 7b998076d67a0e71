//! The statements that a version sent to Postgres, with their parameters: taken from the server's log, and sent again.

use std::error::Error;

use bytes::BytesMut;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::Postgres;
use tokio_postgres::types::{Format, IsNull, ToSql, Type};

use super::dump::connect;

pub(super) struct Statement {
    sql: String,
    /// As text; None is NULL.
    parameters: Vec<Parameter>,
}

/// A parameter as the log shows it: the server reads it as whatever type the statement wants.
#[derive(Debug)]
struct Parameter(Option<String>);

impl Parameter {
    /// What the log does not tell and the server cannot always work out: which kind of list it is.
    fn kind(&self) -> Type {
        let list = self.0.as_deref().and_then(|text| text.strip_prefix('{')?.strip_suffix('}'));
        match list {
            None => Type::UNKNOWN,
            Some(list) if list.bytes().all(|byte| byte.is_ascii_digit() || byte == b',') => Type::INT8_ARRAY,
            Some(_) => Type::BYTEA_ARRAY,
        }
    }
}

impl ToSql for Parameter {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let Some(text) = &self.0 else { return Ok(IsNull::Yes) };
        out.extend_from_slice(text.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn to_sql_checked(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.to_sql(kind, out)
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }
}

/// One line each.
pub(super) fn read(text: &str) -> Vec<Statement> {
    let one = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let parameters = line["parameters"].as_array().unwrap().iter();
        let parameters = parameters.map(|value| Parameter(value.as_str().map(str::to_owned))).collect();
        Statement { sql: line["sql"].as_str().unwrap().to_owned(), parameters }
    };
    text.lines().map(one).collect()
}

/// Sends them, one after the other, on one connection.
pub(super) async fn replay(server: &Postgres, log: &[Statement]) {
    let (client, _running) = connect(server).await;
    for (number, Statement { sql, parameters }) in log.iter().enumerate() {
        let outcome = if parameters.is_empty() {
            client.batch_execute(sql).await
        } else {
            let types: Vec<Type> = parameters.iter().map(Parameter::kind).collect();
            let values: Vec<&(dyn ToSql + Sync)> =
                parameters.iter().map(|parameter| parameter as &(dyn ToSql + Sync)).collect();
            match client.prepare_typed(sql, &types).await {
                Ok(prepared) => client.query(&prepared, &values).await.map(drop),
                Err(error) => Err(error),
            }
        };
        outcome.unwrap_or_else(|error| panic!("statement {number}: {error:?}\n{sql}\n{parameters:?}"));
    }
}

/// A server that writes every statement down.
pub(super) struct Log {
    folder: TempDir,
}

impl Log {
    /// The server is restarted for it.
    pub(super) async fn begin(server: &mut Postgres) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The server runs as somebody else.
        let anybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(folder.path(), anybody).unwrap();
        let (client, _running) = connect(server).await;
        for setting in [
            "ALTER SYSTEM SET logging_collector = on".to_owned(),
            "ALTER SYSTEM SET log_destination = 'jsonlog'".to_owned(),
            "ALTER SYSTEM SET log_file_mode = '0644'".to_owned(),
            format!("ALTER SYSTEM SET log_directory = '{}'", folder.path().display()),
            // Of a role, so that they count more than the server's command line.
            "ALTER ROLE godex SET log_min_messages = 'log'".to_owned(),
            "ALTER ROLE godex SET log_statement = 'all'".to_owned(),
        ] {
            client.batch_execute(&setting).await.unwrap();
        }
        server.crash();
        server.up();
        Self { folder }
    }

    /// What the program sent since then; the settings are taken back.
    pub(super) async fn end(self, server: &Postgres) -> String {
        let (client, _running) = connect(server).await;
        client.batch_execute("ALTER ROLE godex RESET ALL").await.unwrap();
        let mut lines = String::new();
        let mut files: Vec<_> =
            std::fs::read_dir(self.folder.path()).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "json")) {
            let text = std::fs::read_to_string(file).unwrap();
            let entries = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            for entry in entries.filter(|entry| entry["application_name"] == "godex") {
                let message = entry["message"].as_str().unwrap_or_default();
                let Some(sql) = statement(message) else { continue };
                let parameters = parameters(entry["detail"].as_str().unwrap_or_default());
                lines += &(json!({"sql": sql, "parameters": parameters}).to_string() + "\n");
            }
        }
        lines
    }
}

/// `statement: …` of a simple query, `execute <unnamed>: …` of a prepared one.
fn statement(message: &str) -> Option<&str> {
    message
        .strip_prefix("statement: ")
        .or_else(|| message.strip_prefix("execute ")?.split_once(": ").map(|(_, sql)| sql))
}

/// `parameters: $1 = 'it''s', $2 = NULL`
fn parameters(detail: &str) -> Vec<Option<String>> {
    let Some(mut rest) = detail.strip_prefix("parameters: ") else { return Vec::new() };
    let mut found = Vec::new();
    while let Some((_, value)) = rest.split_once(" = ") {
        let Some(quoted) = value.strip_prefix('\'') else {
            found.push(None);
            rest = value.split_once(", ").map_or("", |(_, rest)| rest);
            continue;
        };
        let (mut text, mut characters) = (String::new(), quoted.char_indices().peekable());
        rest = "";
        while let Some((at, character)) = characters.next() {
            if character != '\'' {
                text.push(character);
            } else if characters.next_if(|(_, next)| *next == '\'').is_some() {
                text.push('\'');
            } else {
                rest = quoted[at + 1..].trim_start_matches(", ");
                break;
            }
        }
        found.push(Some(text));
    }
    found
}

#[test]
fn parameters_are_read_as_the_server_writes_them() {
    let detail = r#"parameters: $1 = '\x64', $2 = NULL, $3 = 'it''s, $4 = 5', $4 = '{"\\x00"}', $5 = ''"#;
    let expected = [Some(r"\x64"), None, Some("it's, $4 = 5"), Some(r#"{"\\x00"}"#), Some("")];
    let found = parameters(detail);
    assert_eq!(found.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
    assert_eq!(statement("execute s1: SELECT ': '"), Some("SELECT ': '"));
    assert_eq!(statement("statement: BEGIN"), Some("BEGIN"));
    assert_eq!(statement("connection received"), None);
}

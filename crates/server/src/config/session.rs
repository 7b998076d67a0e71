//! The `session` section: what is kept between requests, where, and for how long.

use std::time::Duration;

use providers::yaml::{Field, Section};

use super::{Backend, ChainConfig, PostgresConfig, Secret, SessionConfig, Sources, locate, size, units};

/// The lives that can be asked for: up to a century.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_hours(36_525 * 24);

#[derive(Clone, Copy)]
enum Kind {
    Sqlite,
    Memory,
    Postgres,
}

impl Kind {
    const ALL: &'static [Self] = &[Self::Sqlite, Self::Memory, Self::Postgres];

    const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Memory => "memory",
            Self::Postgres => "postgres",
        }
    }
}

pub(super) fn read(sources: &Sources<'_>, mut section: Section<'_>) -> SessionConfig {
    let backend = section.field("backend");
    let kind = backend.as_ref().and_then(|field| field.choice(Kind::ALL, Kind::name)).unwrap_or(Kind::Sqlite);
    let mut file = section.section("sqlite");
    let path = file.read("path", Field::text);
    file.finish();
    let path = locate::expand(path.as_deref().unwrap_or("~/.godex/data/sessions.db"), sources);
    let max_bytes = section.read("max_bytes", |field| field.integer(1 << 20..=1 << 40)).unwrap_or(256 << 20);
    let postgres = postgres(section.section("postgres"));
    let backend = match (kind, postgres) {
        (Kind::Sqlite, _) => Backend::Sqlite { path },
        (Kind::Memory, _) => Backend::Memory { max_bytes },
        (Kind::Postgres, Some(postgres)) => Backend::Postgres(postgres),
        (Kind::Postgres, None) => {
            if let Some(field) = backend {
                let help = "postgres://user:password@host/database";
                field.problem("needs `session.postgres.url`", Some(help.to_owned()));
            }
            Backend::Memory { max_bytes }
        }
    };
    let status = section.read("unknown_previous_response_status", |field| field.choice(&[400, 404], status_name));
    let strict = section.read("strict", Field::boolean).unwrap_or(false);
    let ttl = match section.read("ttl", lifetime) {
        None => Some(Duration::from_hours(30 * 24)),
        Some(Life::Limited(ttl)) => Some(ttl),
        Some(Life::Endless) => None,
    };
    let seal_key = section.read("seal_key", seal_key);
    let chain = chain(section.section("chain"));
    section.finish();
    SessionConfig { backend, unknown_previous_response_status: status.unwrap_or(400), strict, ttl, seal_key, chain }
}

fn postgres(mut section: Section<'_>) -> Option<PostgresConfig> {
    let url = section.read("url", Field::text);
    let milliseconds = |field: &Field<'_>| field.integer(1..=600_000).map(Duration::from_millis);
    let default = store::PostgresOptions::default();
    let options = store::PostgresOptions {
        connections: section.read("connections", |field| field.integer(1..=1000)).map_or(default.connections, size),
        acquire: section.read("acquire_ms", milliseconds).unwrap_or(default.acquire),
        statement: section.read("statement_ms", milliseconds).unwrap_or(default.statement),
        retry: section.read("retry_ms", milliseconds).unwrap_or(default.retry),
    };
    section.finish();
    Some(PostgresConfig { url: Secret::new(url?), options })
}

fn chain(mut section: Section<'_>) -> ChainConfig {
    let chain = ChainConfig {
        max_depth: size(section.read("max_depth", |field| field.integer(1..=1_000_000)).unwrap_or(1000)),
        include_incomplete: section.read("include_incomplete", Field::boolean).unwrap_or(true),
        replay_instructions: section.read("replay_instructions", Field::boolean).unwrap_or(false),
    };
    section.finish();
    chain
}

enum Life {
    Endless,
    Limited(Duration),
}

/// `30d`, `12h`, `90m`, `45s`, or `never`. A bare number could mean days as well as seconds.
fn lifetime(field: &Field<'_>) -> Option<Life> {
    let text = field.text()?;
    if text == "never" {
        return Some(Life::Endless);
    }
    let life = units::parse_duration(&text).filter(|life| (SHORTEST..=LONGEST).contains(life));
    if life.is_none() {
        return field.expected("a time such as `30d`, `12h` or `never`");
    }
    life.map(Life::Limited)
}

/// As `lifetime` reads it.
pub(super) fn print_lifetime(ttl: Option<Duration>) -> String {
    ttl.map_or_else(|| "never".to_owned(), units::print_duration)
}

/// Long enough that nobody guesses it.
fn seal_key(field: &Field<'_>) -> Option<Secret> {
    let text = field.text()?;
    if text.len() < 32 {
        field.problem("expected at least 32 characters", Some("`openssl rand -base64 32` makes one".to_owned()));
        return None;
    }
    Some(Secret::new(text))
}

const fn status_name(status: u16) -> &'static str {
    if status == 404 { "404" } else { "400" }
}

//! The `session` section: what is kept between requests, where, and for how long.

use providers::yaml::Field;

use super::key::Keys;
use super::{
    Backend, BackgroundConfig, ChainConfig, PostgresConfig, Secret, SessionConfig, Sources, encryption, locate, size,
    table,
};

/// What keeps them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BackendKind {
    Sqlite,
    Memory,
    Postgres,
}

impl BackendKind {
    pub(super) const ALL: &'static [Self] = &[Self::Sqlite, Self::Memory, Self::Postgres];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Memory => "memory",
            Self::Postgres => "postgres",
        }
    }

    pub(super) const fn of(backend: &Backend) -> Self {
        match backend {
            Backend::Sqlite { .. } => Self::Sqlite,
            Backend::Memory { .. } => Self::Memory,
            Backend::Postgres(_) => Self::Postgres,
        }
    }
}

pub(super) fn read(sources: &Sources<'_>, keys: &mut Keys<'_>) -> SessionConfig {
    SessionConfig {
        backend: backend(sources, keys),
        unknown_previous_response_status: keys.get(&table::SESSION_UNKNOWN_STATUS),
        strict: keys.get(&table::SESSION_STRICT),
        ttl: keys.get(&table::SESSION_TTL),
        seal_key: keys.field(&table::SESSION_SEAL_KEY).as_ref().and_then(seal_key),
        encryption: encryption::read(sources, keys),
        beside: None,
        chain: ChainConfig {
            max_depth: size(keys.get(&table::SESSION_CHAIN_MAX_DEPTH)),
            include_incomplete: keys.get(&table::SESSION_CHAIN_INCOMPLETE),
            replay_instructions: keys.get(&table::SESSION_CHAIN_INSTRUCTIONS),
        },
        event_ttl: keys.get(&table::SESSION_EVENT_TTL),
        resume_foreground: keys.get(&table::SESSION_RESUME_FOREGROUND),
        background: BackgroundConfig {
            concurrency: count(keys.get(&table::SESSION_BACKGROUND_CONCURRENCY)),
            queue: count(keys.get(&table::SESSION_BACKGROUND_QUEUE)),
        },
    }
}

fn count(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn backend(sources: &Sources<'_>, keys: &mut Keys<'_>) -> Backend {
    let kind = keys.get(&table::SESSION_BACKEND);
    let path = locate::expand(&keys.get(&table::SESSION_SQLITE_PATH), sources);
    let max_bytes = keys.get(&table::SESSION_MAX_BYTES);
    let postgres = postgres(keys);
    match (kind, postgres) {
        (BackendKind::Sqlite, _) => Backend::Sqlite { path },
        (BackendKind::Memory, _) => Backend::Memory { max_bytes },
        (BackendKind::Postgres, Some(postgres)) => Backend::Postgres(postgres),
        (BackendKind::Postgres, None) => {
            if let Some(field) = keys.field(&table::SESSION_BACKEND) {
                let help = "postgres://user:password@host/database";
                field.problem("needs `session.postgres.url`", Some(help.to_owned()));
            }
            Backend::Memory { max_bytes }
        }
    }
}

fn postgres(keys: &mut Keys<'_>) -> Option<PostgresConfig> {
    let url = keys.field(&table::SESSION_POSTGRES_URL).as_ref().and_then(Field::text);
    let options = store::PostgresOptions {
        connections: size(keys.get(&table::SESSION_POSTGRES_CONNECTIONS)),
        acquire: keys.get(&table::SESSION_POSTGRES_ACQUIRE),
        statement: keys.get(&table::SESSION_POSTGRES_STATEMENT),
        retry: keys.get(&table::SESSION_POSTGRES_RETRY),
    };
    Some(PostgresConfig { url: Secret::new(url?), options })
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

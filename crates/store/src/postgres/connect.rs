//! Connecting: the address, TLS, the pool, the schema, the secret.

use std::str::FromStr;
use std::sync::Arc;

use aws_lc_rs::digest;
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::encryption::NAME;
use super::hints::Hints;
use super::migrate::{self, migrate};
use super::{Database, sql};
use crate::prefix::Secret;
use crate::{Encryption, Error, OpenError, PostgresLook, PostgresOptions, Tenant};

impl Database {
    pub(crate) async fn connect(
        url: &str,
        options: &PostgresOptions,
        encryption: &Encryption,
    ) -> Result<(Self, Secret), OpenError> {
        let Connecting { pool, config, tls } = Connecting::new(url, options)?;
        let hints = Arc::new(Hints::new(&pool, options, config, tls)?);
        let database = Self { pool, options: *options, hints };
        let mut client =
            database.pool.get().await.map_err(|error| OpenError::Postgres { reason: reason(&error).into() })?;
        migrate(&mut client).await?;
        drop(client);
        super::indexes::ensure(&database.pool).await.map_err(away)?;
        let fresh = Secret::random()?;
        let secret = database.secret(&fresh, encryption).await?;
        Ok((database, secret))
    }
}

/// What connections are made with; none is made yet.
struct Connecting {
    pool: Pool,
    config: Config,
    tls: Option<MakeRustlsConnect>,
}

impl Connecting {
    fn new(url: &str, options: &PostgresOptions) -> Result<Self, OpenError> {
        let mut config = Config::from_str(url).map_err(OpenError::Address)?;
        config.connect_timeout(options.acquire);
        if config.get_application_name().is_none() {
            config.application_name("godex");
        }
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let tls = match config.get_ssl_mode() {
            SslMode::Disable => None,
            _ => Some(MakeRustlsConnect::new(tls()?)),
        };
        let manager = match tls.clone() {
            None => Manager::from_config(config.clone(), NoTls, recycling),
            Some(tls) => Manager::from_config(config.clone(), tls, recycling),
        };
        let pool = Pool::builder(manager)
            .max_size(options.connections.max(1))
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(options.acquire))
            .create_timeout(Some(options.acquire))
            .recycle_timeout(Some(options.acquire))
            .build()
            .map_err(|error| OpenError::Postgres { reason: error.to_string().into() })?;
        Ok(Self { pool, config, tls })
    }
}

/// Looks at a database without changing anything in it.
pub(crate) async fn inspect(
    url: &str,
    options: &PostgresOptions,
    encryption: &Encryption,
) -> Result<PostgresLook, OpenError> {
    let options = PostgresOptions { connections: 1, ..*options };
    let Connecting { pool, .. } = Connecting::new(url, &options)?;
    let client = pool.get().await.map_err(|error| OpenError::Postgres { reason: reason(&error).into() })?;
    let failed = |error: tokio_postgres::Error| OpenError::Postgres { reason: reason(&error).into() };
    let row = client.query_one(migrate::SERVER, &[]).await.map_err(failed)?;
    let (version, made): (String, bool) = (row.get(0), row.get(1));
    if !made {
        return Ok(PostgresLook { version, schema: 0, refused: None, sealed: None, keys: false });
    }
    let schema = client.query_one(migrate::NEWEST, &[]).await.map_err(failed)?.get(0);
    let has_table: bool = client.query_one(migrate::KEY_TABLE, &[]).await.map_err(failed)?.get(0);
    let keys = has_table && client.query_one(migrate::ANY_KEY, &[]).await.map_err(failed)?.get(0);
    let sealed = keys_problem(&client, encryption).await.map(|problem| problem.to_string());
    Ok(PostgresLook { version, schema, refused: migrate::problem(schema), sealed, keys })
}

/// Why these keys do not open it, if they do not. Older ones have no data keys.
async fn keys_problem(client: &Client, encryption: &Encryption) -> Option<OpenError> {
    let used = client.query(sql::WRAPPINGS, &[]).await.ok()?;
    let used: Vec<Vec<u8>> = used.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>().ok()?;
    let wrapped = client.query_opt(sql::SECRET_WRAPPED, &[]).await.ok()?.map(|row| row.try_get::<_, Vec<u8>>(0));
    let admitted = encryption.admit(NAME, used.iter().map(Vec::as_slice));
    let opened = admitted.and_then(|()| match wrapped {
        Some(Ok(wrapped)) => encryption.unwrap_secret(NAME, &wrapped).map(drop),
        _ => Ok(()),
    });
    opened.err()
}

pub(super) fn away(error: Error) -> OpenError {
    let reason = match error {
        Error::Unavailable(unavailable) => unavailable.reason().into(),
        other => other.to_string().into(),
    };
    OpenError::Postgres { reason }
}

/// The whole chain of causes: the outermost only says that it failed.
fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.dedup();
    texts.join(": ")
}

/// The system's roots, always verified.
fn tls() -> Result<rustls::ClientConfig, OpenError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.and_then(BuilderVerifierExt::with_platform_verifier).map_err(OpenError::Tls)?;
    Ok(builder.with_no_client_auth())
}

/// The number of a tenant's advisory lock, the same in every instance. Two tenants with one number would only wait
/// for each other.
pub(super) fn lock(tenant: &Tenant) -> i64 {
    number(digest::digest(&digest::SHA256, tenant.key()))
}

/// As [`lock`], of those who may raise the number of the tenant's jobs.
pub(super) fn jobs_lock(tenant: &Tenant) -> i64 {
    let mut hash = digest::Context::new(&digest::SHA256);
    hash.update(b"jobs\0");
    hash.update(tenant.key());
    number(hash.finish())
}

fn number(hash: digest::Digest) -> i64 {
    hash.as_ref().first_chunk::<8>().map_or(0, |bytes| i64::from_be_bytes(*bytes))
}

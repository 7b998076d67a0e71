//! Copies of a SQLite file while it is used, such copies put into its place, and whether what is stored is whole.

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::{Backend, Encryption, Error, Holding, OpenError, Store, Tenant, Tenanted, sqlite};

/// Stored things that are read in one step of a check.
const STEP: usize = 100;

/// Findings that are kept; whoever has more has enough.
const MOST: usize = 100;

/// A copy of the database, to be taken chunk by chunk.
#[derive(Debug)]
pub struct Backup {
    bytes: u64,
    chunks: mpsc::Receiver<io::Result<Bytes>>,
}

impl Backup {
    pub(crate) const fn new(bytes: u64, chunks: mpsc::Receiver<io::Result<Bytes>>) -> Self {
        Self { bytes, chunks }
    }

    /// How long it is.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next part of it; None: that was all.
    pub async fn next(&mut self) -> Option<io::Result<Bytes>> {
        self.chunks.recv().await
    }
}

/// What a restore did.
#[derive(Debug, Default)]
pub struct Restored {
    /// Where the database is that was there before.
    pub aside: Option<PathBuf>,
    /// The secret that was asked for.
    pub secret: Option<[u8; 32]>,
}

/// Why a database is as it was.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("{} is there already; --force puts it aside", .0.display())]
    Exists(PathBuf),
    #[error("the backup is damaged:\n{}", .0.join("\n"))]
    Damaged(Vec<String>),
    #[error("cannot write {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Puts a backup into the place of a database that no process has open, after it was found to be whole and to open with
/// these keys. `secret` names what is wanted of the secrets that came with it.
///
/// # Errors
/// Nothing has changed then, but for the last steps: what was there may have been put aside.
pub fn restore_sqlite(
    from: &Path,
    to: &Path,
    encryption: &Encryption,
    replace: bool,
    secret: &str,
) -> Result<Restored, RestoreError> {
    sqlite::restore(from, to, encryption, replace, secret)
}

/// What is wrong with a SQLite file that no process has open; nothing is changed in it.
///
/// # Errors
/// It cannot be read at all.
pub fn check_sqlite(path: &Path) -> Result<Vec<String>, OpenError> {
    sqlite::check_file(path)
}

impl Store {
    /// A copy of the SQLite file as of now, with this secret of the same process in it, which is encrypted where the store
    /// has a key.
    pub async fn backup(&self, secret: Option<(&str, [u8; 32])>) -> Result<Backup, Error> {
        let Backend::Sqlite(database) = &self.backend else {
            return Err(Error::unavailable("only a SQLite file can be copied"));
        };
        let secret = match (secret, self.vault.encryption().key.as_ref()) {
            (None, _) => None,
            (Some((name, secret)), None) => Some((name.to_owned(), secret.to_vec())),
            (Some((name, secret)), Some(key)) => Some((format!("{name}.wrapped"), key.wrap_named(&secret)?)),
        };
        database.backup(secret.into_iter().collect()).await
    }

    /// Looks everything over, step by step.
    pub fn checking(&self) -> Checking {
        Checking { store: self.clone(), phase: Phase::File, found: Vec::new(), read: 0 }
    }
}

/// A look at everything that is stored: the file and its rows, where there is one, then whether each response and
/// conversation can be read.
#[derive(Debug)]
pub struct Checking {
    store: Store,
    phase: Phase,
    found: Vec<String>,
    read: u64,
}

#[derive(Debug)]
enum Phase {
    File,
    /// The tenants that are left, the next one last, and where in it.
    Tenants(Vec<Tenant>, Option<Holding>),
    Over,
}

impl Checking {
    /// Does a part of it; false: that was all.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn step(&mut self) -> Result<bool, Error> {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::File => {
                if let Backend::Sqlite(database) = &self.store.backend {
                    self.found = database.check().await?;
                }
                // Of a torn file nothing more is to be learned.
                if self.found.is_empty() {
                    let mut tenants: Vec<Tenant> =
                        self.store.holdings().await?.into_iter().map(|holdings| holdings.tenant).collect();
                    tenants.reverse();
                    self.phase = Phase::Tenants(tenants, None);
                }
            }
            Phase::Tenants(mut tenants, after) => {
                let Some(tenant) = tenants.last() else { return Ok(false) };
                let last = self.read_some(self.store.for_tenant(tenant.clone()), tenant.clone(), after).await?;
                if last.is_none() {
                    tenants.pop();
                }
                self.phase = Phase::Tenants(tenants, last);
            }
            Phase::Over => return Ok(false),
        }
        Ok(!matches!(self.phase, Phase::Over))
    }

    /// Where it has come to; None: that was all of this tenant.
    async fn read_some(
        &mut self,
        store: Tenanted,
        tenant: Tenant,
        after: Option<Holding>,
    ) -> Result<Option<Holding>, Error> {
        let page = store.held(after, STEP).await?;
        let last = page.last().cloned();
        for holding in page {
            let id = holding.id.clone();
            match store.export(holding).await {
                // What its owner has deleted is no damage.
                Ok(_) | Err(Error::DeletedAncestor) => {}
                Err(Error::Corrupt(what)) => {
                    if self.found.len() < MOST {
                        self.found.push(format!("{id} of tenant {} cannot be read: {what}", tenant.name()));
                    }
                }
                Err(error) => return Err(error),
            }
            self.read += 1;
        }
        Ok(last)
    }

    /// How many responses and conversations were read.
    pub const fn read(&self) -> u64 {
        self.read
    }

    /// What is wrong, each in a line.
    pub fn findings(&self) -> &[String] {
        &self.found
    }
}

//! Copies of a SQLite file while it is used, such copies put into its place, and whether what is stored is whole.

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::encryption::{BodyTable, Cursor, data_keys};
use crate::whole::{Findings, Looked, Looker};
use crate::{Backend, Encryption, Error, Holding, OpenError, Order, Page, Store, Tenant, Tenanted, sqlite};

/// Stored things that are read in one step of a check.
const STEP: usize = 100;

/// Bytes of a conversation that are read at once.
const BYTES: usize = 4 << 20;

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
/// these keys. `secret` names what is wanted of the secrets that came with it; the one of that name that there is now goes
/// with what was there, which so is a backup like any other.
///
/// # Errors
/// Nothing has changed then, but for the last steps: what was there may have been put aside.
pub fn restore_sqlite(
    from: &Path,
    to: &Path,
    encryption: &Encryption,
    replace: bool,
    secret: (&str, Option<[u8; 32]>),
) -> Result<Restored, RestoreError> {
    sqlite::restore(from, to, encryption, replace, secret)
}

/// What is wrong with a SQLite file that no process has open; nothing is changed in it. What is encrypted is read as far as
/// these keys open it.
///
/// # Errors
/// It cannot be read at all.
pub fn check_sqlite(path: &Path, encryption: &Encryption) -> Result<Findings, OpenError> {
    sqlite::check_file(path, encryption)
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

    /// Looks at some bodies from that place on.
    async fn look(&self, table: BodyTable, from: &Cursor, looker: Looker) -> Result<Looked, Error> {
        match &self.backend {
            Backend::Sqlite(database) => {
                let from = from.clone();
                let look =
                    move |connection: &_| sqlite::look(connection, looker.tenant().name(), table, &from, &looker);
                database.read(look).await
            }
            Backend::Postgres(database) => database.look(looker.tenant(), table, from, &looker).await,
        }
    }

    /// Whether a tenant whose bodies would be sealed has no key: an erasure has forgotten them and is about to erase the rest,
    /// or did not come to that.
    async fn has_forgotten(&self, tenant: &Tenant) -> Result<bool, Error> {
        Ok(self.vault.encryption().is_on() && data_keys(&self.backend, tenant).await?.is_empty())
    }

    /// Looks everything over, step by step.
    pub fn checking(&self) -> Checking {
        Checking { store: self.clone(), phase: Phase::File, found: Findings::default(), read: 0, rows: 0 }
    }
}

/// A look at everything that is stored: the file and its rows, where there is one, then of each tenant whether what is in
/// its rows is what it must be, and whether each response and conversation can be read.
#[derive(Debug)]
pub struct Checking {
    store: Store,
    phase: Phase,
    found: Findings,
    read: u64,
    rows: u64,
}

#[derive(Debug)]
enum Phase {
    File,
    /// The tenants that are left, the next one last, and where in it.
    Tenants(Vec<Tenant>, At),
    Over,
}

#[derive(Debug)]
enum At {
    /// In a table, by its place among all.
    Bodies(usize, Cursor),
    /// After that one.
    Holdings(Option<Holding>),
}

impl At {
    fn start() -> Self {
        Self::Bodies(0, Cursor::start())
    }
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
                    self.found = Findings::torn(database.check().await?);
                }
                // Of a torn file nothing more is to be learned.
                if self.found.is_empty() {
                    let mut tenants: Vec<Tenant> =
                        self.store.holdings().await?.into_iter().map(|holdings| holdings.tenant).collect();
                    tenants.reverse();
                    self.phase = Phase::Tenants(tenants, At::start());
                }
            }
            Phase::Tenants(mut tenants, at) => {
                let Some(tenant) = tenants.last().cloned() else { return Ok(false) };
                let next = match at {
                    At::Bodies(table, from) => self.look_at_some(&tenant, table, &from).await?,
                    At::Holdings(after) => {
                        let last = self.read_some(self.store.for_tenant(tenant.clone()), tenant, after).await?;
                        last.map(|last| At::Holdings(Some(last)))
                    }
                };
                let next = next.unwrap_or_else(|| {
                    tenants.pop();
                    At::start()
                });
                self.phase = Phase::Tenants(tenants, next);
            }
            Phase::Over => return Ok(false),
        }
        Ok(!matches!(self.phase, Phase::Over))
    }

    /// Looks at some rows; where the next are. None: nothing of this tenant can be read.
    async fn look_at_some(&mut self, tenant: &Tenant, table: usize, from: &Cursor) -> Result<Option<At>, Error> {
        let Some(named) = BodyTable::ALL.get(table) else { return Ok(Some(At::Holdings(None))) };
        let looker = if self.store.has_forgotten(tenant).await? {
            Ok(Looker::without_keys(tenant.clone()))
        } else {
            self.store
                .vault
                .reading(&self.store.backend, tenant)
                .await
                .map(|cipher| Looker::new(tenant.clone(), cipher))
        };
        let looked = match looker {
            Ok(looker) => self.store.look(*named, from, looker).await,
            Err(error) => Err(error),
        };
        let mut looked = match looked {
            Err(Error::Corrupt(what)) => {
                self.found.add(format!("nothing of tenant {} can be read: {what}", tenant.name()));
                return Ok(None);
            }
            looked => looked?,
        };
        self.rows += looked.read;
        let next = looked.next.take();
        self.found.add_all(looked);
        Ok(Some(next.map_or_else(|| At::Bodies(table + 1, Cursor::start()), |next| At::Bodies(table, next))))
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
            match readable(&store, holding).await {
                // What its owner has deleted, or deletes now, is no damage.
                Ok(()) | Err(Error::DeletedAncestor | Error::NotFound | Error::NoSuchCursor) => {}
                Err(Error::Corrupt(what)) => {
                    // Nor is what nobody can open any more.
                    if !self.store.has_forgotten(&tenant).await? {
                        self.found.add(format!("{id} of tenant {} cannot be read: {what}", tenant.name()));
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

    /// How many rows were looked at.
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    pub const fn findings(&self) -> &Findings {
        &self.found
    }
}

/// Whether it can be given out, a part at a time.
async fn readable(store: &Tenanted, holding: Holding) -> Result<(), Error> {
    if holding.status.is_some() {
        return store.export(holding).await.map(drop);
    }
    store.conversation(&holding.id).await?;
    let mut after = None;
    loop {
        let page = Page { limit: 100, order: Order::OldestFirst, max_bytes: BYTES, after };
        let page = store.conversation_items(&holding.id, page).await?;
        after = page.items.last().map(|last| last.id.clone());
        if !page.has_more || after.is_none() {
            return Ok(());
        }
    }
}

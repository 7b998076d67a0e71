//! A change of the store's key: the data keys are wrapped anew, and what is in clear or under older data keys is sealed
//! anew; or everything goes back to clear.
//!
//! It goes tenant by tenant and table by table in small steps, each of which is durable, and whatever is done already is
//! left alone: one that was cut off is run again. A row that does not open stays as it is and is counted.

use std::time::Duration;

use super::vault::{REMEMBERED, data_keys};
use super::{Cipher, DataKey, NewDataKey, Place, Rotation};
use crate::packed::SEALED;
use crate::{Backend, Error, Store, Tenant, sqlite};

/// After this nobody seals with a key that has a successor: longer than any process goes by what it has read, and than
/// any write is tried again.
const OUT_OF_USE: Duration = Duration::from_hours(1);

/// How often everything is looked at where others write meanwhile.
const PASSES: usize = 4;

/// What is to become of the bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rewriting {
    /// All sealed, under the store's key as it is now.
    Seal,
    /// All in clear.
    Clear,
}

/// What was done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rekeyed {
    pub tenants: u64,
    /// Data keys that were wrapped anew, or made.
    pub data_keys: u64,
    /// Rows that were written anew, and the bytes of them.
    pub rows: u64,
    pub bytes: u64,
    /// Rows that do not open. They are as they were.
    pub damaged: u64,
    /// Data keys that are not needed any more and are kept for a while, for processes that may still seal with them.
    pub kept: u64,
}

/// Where bodies are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyTable {
    Item,
    Response,
    Settings,
    Conversation,
    Event,
    Job,
    Notice,
}

impl BodyTable {
    pub(crate) const ALL: [Self; 7] =
        [Self::Item, Self::Response, Self::Settings, Self::Conversation, Self::Event, Self::Job, Self::Notice];

    /// The row, for people.
    pub(crate) fn named(self, row: &Cursor) -> String {
        let name = String::from_utf8_lossy(&row.name);
        match self {
            Self::Item => format!("item {name}"),
            Self::Response => format!("response {name}"),
            Self::Settings => {
                let hash: Vec<String> = row.name.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
                format!("settings {}", hash.concat())
            }
            Self::Conversation => format!("conversation {name}"),
            Self::Event => format!("the events of {name} from {} on", row.second),
            Self::Job => format!("the job of {name}"),
            Self::Notice => format!("notice {name}"),
        }
    }

    /// The place of a row that was found.
    pub(crate) fn place(self, row: &Cursor) -> Result<Place<'_>, Error> {
        let name = || str::from_utf8(&row.name).map_err(|_| Error::corrupt("an id is not text"));
        Ok(match self {
            Self::Item => Place::item(name()?),
            Self::Response => Place::head(name()?),
            Self::Settings => Place::settings(&row.name),
            Self::Conversation => Place::conversation(name()?),
            Self::Event => Place::events(name()?, row.second),
            Self::Job => Place::job(name()?),
            Self::Notice => Place::notice(name()?),
        })
    }
}

/// Which row: by its name, or by two numbers (an item), or by its name and a number (events).
#[derive(Debug, Clone, Default)]
pub(crate) struct Cursor {
    pub(crate) name: Vec<u8>,
    pub(crate) first: i64,
    /// Before the first row it is the smallest.
    pub(crate) second: i64,
}

impl Cursor {
    pub(crate) fn start() -> Self {
        Self { name: Vec::new(), first: i64::MIN, second: i64::MIN }
    }
}

/// How the bodies of one tenant are written anew.
#[derive(Debug, Clone)]
pub(crate) struct Recipher {
    cipher: Cipher,
    /// What bodies begin with that are as they should be, or, back to clear, those that are not.
    pub(crate) mark: Vec<u8>,
    /// Whether those that begin so are wanted.
    pub(crate) wanted: bool,
}

impl Recipher {
    pub(crate) fn rewrite(&self, table: BodyTable, row: &Cursor, body: Vec<u8>) -> Result<Vec<u8>, Error> {
        let place = table.place(row)?;
        self.cipher.pack(place, &self.cipher.unpack(place, body)?)
    }
}

/// What one step did, and where the next one begins; None at the end of the table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Step {
    pub(crate) next: Option<Cursor>,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) damaged: u64,
}

impl Store {
    /// Writes everything anew under the store's key as it is now, or in clear. `told` hears how far it is.
    ///
    /// On Postgres other processes may go on meanwhile: they need both keys, and, when everything goes back to clear, none
    /// that makes data keys. Where data keys are kept at the end, a later run forgets them.
    pub async fn rekey(&self, how: Rewriting, told: &mut (dyn FnMut(&Rekeyed) + Send)) -> Result<Rekeyed, Error> {
        let mut done = Rekeyed::default();
        let alone = matches!(self.backend, Backend::Sqlite(_));
        for pass in 0..if alone { 1 } else { PASSES } {
            let (mut tenant, mut announced) = (None, false);
            while let Some(next) = tenant_after(&self.backend, tenant.as_ref()).await? {
                announced |= self.rotate(&next, how, &mut done).await?;
                told(&done);
                tenant = Some(next);
            }
            // Until everybody knows the new keys, and has written what was sealed with the old ones.
            if !alone && (announced || pass > 0) {
                tokio::time::sleep(REMEMBERED * 2).await;
            }
            let before = done.rows;
            (done.tenants, done.damaged) = (0, 0);
            let mut tenant = None;
            while let Some(next) = tenant_after(&self.backend, tenant.as_ref()).await? {
                self.rewrite(&next, how, &mut done, told).await?;
                done.tenants += 1;
                tenant = Some(next);
            }
            if done.rows == before {
                break;
            }
        }
        self.finish_rekey(how, &mut done).await?;
        told(&done);
        Ok(done)
    }

    /// Wraps the tenant's data keys anew. The tenant gets a new one if the one in use is an older store key's; true if that
    /// is only announced yet.
    async fn rotate(&self, tenant: &Tenant, how: Rewriting, done: &mut Rekeyed) -> Result<bool, Error> {
        let rows = data_keys(&self.backend, tenant).await?;
        let encryption = self.vault.encryption();
        let mut rotation = Rotation::default();
        match (how, &encryption.key) {
            (Rewriting::Clear, _) => rotation.retire = true,
            (Rewriting::Seal, None) => return Err(Error::unavailable("there is no key to encrypt with")),
            (Rewriting::Seal, Some(key)) => {
                let theirs = |row: &DataKey| row.wrapped.starts_with(key.id());
                for row in rows.iter().filter(|row| !theirs(row)) {
                    let bound_to = DataKey::bound_to(tenant, row.number);
                    let plain = encryption.unwrap(&bound_to, &row.wrapped)?;
                    let wrapped = key.wrap(&bound_to, &plain)?;
                    rotation.rewrapped.push(NewDataKey { number: row.number, wrapped, wrapping: *key.id() });
                }
                // One that is announced already was made by a run that was cut off.
                let newest = rows.iter().filter(|row| !row.retired).max_by_key(|row| row.number);
                if !newest.is_some_and(theirs) {
                    rotation.new = DataKey::made(encryption, tenant, DataKey::next(&rows))?;
                }
            }
        }
        let announced = rotation.new.is_some() || rows.iter().any(|row| row.coming);
        done.data_keys += rotation.rewrapped.len() as u64 + u64::from(rotation.new.is_some());
        rotate(&self.backend, tenant, rotation).await?;
        self.vault.forget(tenant);
        Ok(announced)
    }

    async fn rewrite(
        &self,
        tenant: &Tenant,
        how: Rewriting,
        done: &mut Rekeyed,
        told: &mut (dyn FnMut(&Rekeyed) + Send),
    ) -> Result<(), Error> {
        let rows = data_keys(&self.backend, tenant).await?;
        let cipher = Cipher::of(self.vault.encryption(), tenant, &rows)?;
        let (mark, wanted) = match (how, cipher.mark()) {
            (Rewriting::Clear, None) => (vec![SEALED], true),
            (Rewriting::Seal, Some(mark)) => (mark.to_vec(), false),
            // It came meanwhile, and is the next pass's.
            (Rewriting::Seal, None) => return Ok(()),
            (Rewriting::Clear, Some(_)) => {
                return Err(Error::unavailable("another process encrypts meanwhile: it has session.encryption.key"));
            }
        };
        let recipher = Recipher { cipher, mark, wanted };
        let before = *done;
        for table in BodyTable::ALL {
            let mut cursor = Some(Cursor::start());
            while let Some(from) = cursor {
                let step = rewrite(&self.backend, tenant, table, from, &recipher).await?;
                done.rows += step.rows;
                done.bytes += step.bytes;
                done.damaged += step.damaged;
                told(done);
                cursor = step.next;
            }
        }
        // Where others write, only what was found so is known to be so.
        let quiet = matches!(self.backend, Backend::Sqlite(_)) || before.rows == done.rows;
        if how == Rewriting::Seal && before.damaged == done.damaged && quiet {
            sealed_only(&self.backend, tenant).await?;
            self.vault.forget(tenant);
        }
        Ok(())
    }

    /// The store's own secret follows the data keys; what nobody needs any more goes.
    async fn finish_rekey(&self, how: Rewriting, done: &mut Rekeyed) -> Result<(), Error> {
        let wrapped = match (how, &self.vault.encryption().key) {
            (Rewriting::Seal, Some(key)) => Some(key.wrap_secret(&self.secret)?),
            _ => None,
        };
        // Whatever damaged rows need to be opened, should they be mended, stays.
        let forgets = done.damaged == 0;
        if how == Rewriting::Clear && !forgets {
            return Ok(());
        }
        let secret = self.secret.0;
        done.kept = match &self.backend {
            Backend::Sqlite(database) => {
                let work = move |connection: &_| {
                    sqlite::keep_secret(connection, &secret, wrapped.as_deref())?;
                    if forgets { sqlite::forget_data_keys(connection) } else { Ok(0) }
                };
                database.erase(work).await?
            }
            Backend::Postgres(database) => {
                database.keep_secret(&secret, wrapped.as_deref()).await?;
                if forgets { database.forget_data_keys(OUT_OF_USE).await? } else { 0 }
            }
        };
        Ok(())
    }

    /// Forgets the data keys of a tenant: whatever is sealed with them cannot be read any more, wherever there is a copy.
    ///
    /// To be called before the tenant's rows are erased. It returns when no other process seals with them any more: what was
    /// sealed meanwhile is erased with the rows. A key that the tenant gets after that is not touched.
    pub async fn forget_tenant_keys(&self, tenant: &Tenant) -> Result<u64, Error> {
        let count = match &self.backend {
            Backend::Sqlite(database) => {
                let tenant = tenant.clone();
                database.erase(move |connection| sqlite::forget_keys_of(connection, tenant.name())).await?
            }
            Backend::Postgres(database) => database.forget_keys_of(tenant).await?,
        };
        self.vault.forget(tenant);
        if count > 0 && matches!(self.backend, Backend::Postgres(_)) {
            tokio::time::sleep(REMEMBERED).await;
        }
        Ok(count)
    }
}

async fn tenant_after(backend: &Backend, after: Option<&Tenant>) -> Result<Option<Tenant>, Error> {
    let after = after.map_or(String::new(), |tenant| tenant.name().to_owned());
    let found = match backend {
        Backend::Sqlite(database) => database.read(move |connection| sqlite::tenant_after(connection, &after)).await?,
        Backend::Postgres(database) => database.tenant_after(&after).await?,
    };
    Ok(found.map(|name| Tenant::new(&name)))
}

async fn rotate(backend: &Backend, tenant: &Tenant, rotation: Rotation) -> Result<(), Error> {
    match backend {
        Backend::Sqlite(database) => {
            let tenant = tenant.clone();
            database.write(move |connection| sqlite::rotate(connection, tenant.name(), &rotation)).await
        }
        Backend::Postgres(database) => database.rotate(tenant, &rotation, REMEMBERED * 2).await,
    }
}

async fn rewrite(
    backend: &Backend,
    tenant: &Tenant,
    table: BodyTable,
    from: Cursor,
    recipher: &Recipher,
) -> Result<Step, Error> {
    match backend {
        Backend::Sqlite(database) => {
            let (tenant, recipher) = (tenant.clone(), recipher.clone());
            // That the words leave the log, too, is seen to once, at the end.
            database.write(move |connection| sqlite::rewrite(connection, tenant.name(), table, &from, &recipher)).await
        }
        Backend::Postgres(database) => database.rewrite(tenant, table, &from, recipher).await,
    }
}

async fn sealed_only(backend: &Backend, tenant: &Tenant) -> Result<(), Error> {
    match backend {
        Backend::Sqlite(database) => {
            let tenant = tenant.clone();
            database.write(move |connection| sqlite::sealed_only(connection, tenant.name())).await
        }
        Backend::Postgres(database) => database.sealed_only(tenant).await,
    }
}

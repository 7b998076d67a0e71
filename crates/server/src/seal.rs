//! The seal over reasoning that clients carry for us: authenticated, bound to the tenant and to the version of
//! the format. What another tenant, another key or another version sealed does not open, and neither does what
//! somebody changed.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::{digest, hmac};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use store::Tenant;

use crate::config::{Backend, SessionConfig};
use crate::start::StartError;

/// Begins every seal, and is part of what is authenticated.
const VERSION: &str = "gx1.";

const KEY_FILE: &str = "seal.key";

/// Keys that are put aside beside each other.
const NAMES: u32 = 1000;

type Key = [u8; 32];

/// The server's key.
#[derive(Clone)]
pub(crate) struct SealKey(Arc<Ciphers>);

/// What is made of the one key.
struct Ciphers {
    seal: LessSafeKey,
    mac: hmac::Key,
}

impl std::fmt::Debug for SealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealKey(<redacted>)")
    }
}

/// Where the key is that nobody has configured.
fn key_file(config: &SessionConfig) -> Option<PathBuf> {
    let database = match &config.backend {
        Backend::Sqlite { path } => Some(path),
        Backend::Memory { .. } | Backend::Postgres(_) => config.beside.as_ref(),
    };
    database.map(|path| path.with_file_name(KEY_FILE))
}

impl SealKey {
    /// The configured key; else the one beside the database, made on the first start; else the store's, which all
    /// instances share or which is gone with the process.
    pub(crate) fn of(config: &SessionConfig, store: &store::Store) -> Result<Self, StartError> {
        let key = match (&config.seal_key, key_file(config)) {
            (Some(secret), _) => derived(secret.expose()),
            (None, Some(path)) => stored(&path).map_err(|source| StartError::SealKey { path, source })?,
            (None, None) => store.derive_key("seal"),
        };
        Self::new(&key)
    }

    /// Whether the key would have to be made first.
    pub(crate) fn is_there(config: &SessionConfig) -> bool {
        config.seal_key.is_some() || key_file(config).is_some_and(|path| path.exists())
    }

    /// Where the key is, if it is in a file beside the database: a copy of the database is worth less without it.
    pub(crate) fn file(config: &SessionConfig) -> Option<PathBuf> {
        match (&config.seal_key, &config.backend) {
            (None, Backend::Sqlite { path }) => Some(path.with_file_name(KEY_FILE)),
            _ => None,
        }
    }

    fn new(key: &Key) -> Result<Self, StartError> {
        let unbound = UnboundKey::new(&AES_256_GCM_SIV, key).map_err(|_| StartError::SealKey {
            path: PathBuf::from(KEY_FILE),
            source: io::Error::other("the key was refused"),
        })?;
        // Never the key itself for two things.
        let mac = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), b"godex mac key 1");
        let mac = hmac::Key::new(hmac::HMAC_SHA256, mac.as_ref());
        Ok(Self(Arc::new(Ciphers { seal: LessSafeKey::new(unbound), mac })))
    }

    /// The seal of one tenant.
    pub(crate) fn tenant(&self, tenant: &Tenant) -> TenantSeal {
        TenantSeal {
            key: self.clone(),
            bound_to: format!("{VERSION}{}", tenant.name()),
            once_bound_to: (*tenant == Tenant::default()).then_some(VERSION),
        }
    }
}

/// Seals and opens for one tenant.
#[derive(Debug, Clone)]
pub(crate) struct TenantSeal {
    key: SealKey,
    /// Version and tenant: a seal opens only where both are the same.
    bound_to: String,
    /// What the seals of the one tenant that there was at first are bound to; clients still carry some.
    once_bound_to: Option<&'static str>,
}

impl TenantSeal {
    /// A code that only this server makes, of these parts, for this tenant and for this purpose. No two lists of parts have
    /// the same.
    pub(crate) fn mac(&self, purpose: &str, parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = hmac::Context::with_key(&self.key.0.mac);
        for part in [purpose.as_bytes(), self.bound_to.as_bytes()].iter().chain(parts) {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac.sign().as_ref().first_chunk().copied().unwrap_or_default()
    }
}

impl bridge::Seal for TenantSeal {
    /// Empty if there is no randomness to be had: then nothing is carried, and nothing leaks.
    fn seal(&self, plain: &[u8]) -> String {
        let mut nonce = [0_u8; NONCE_LEN];
        if getrandom::fill(&mut nonce).is_err() {
            return String::new();
        }
        let mut sealed = plain.to_vec();
        let aad = Aad::from(self.bound_to.as_bytes());
        let key = &self.key.0.seal;
        if key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed).is_err() {
            return String::new();
        }
        sealed.splice(0..0, nonce);
        format!("{VERSION}{}", URL_SAFE_NO_PAD.encode(sealed))
    }

    fn open(&self, sealed: &str) -> Option<Vec<u8>> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed.strip_prefix(VERSION)?).ok()?;
        let open = |bound_to: &str| {
            let mut bytes = bytes.clone();
            let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN)?;
            let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
            self.key
                .0
                .seal
                .open_in_place(nonce, Aad::from(bound_to.as_bytes()), sealed)
                .ok()
                .map(|plain| plain.to_vec())
        };
        open(&self.bound_to).or_else(|| open(self.once_bound_to?))
    }
}

/// A key out of a configured secret of any length.
fn derived(secret: &str) -> Key {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(b"godex seal key 1\0");
    context.update(secret.as_bytes());
    let mut key = Key::default();
    key.copy_from_slice(context.finish().as_ref());
    key
}

fn fresh() -> io::Result<Key> {
    let mut key = Key::default();
    getrandom::fill(&mut key).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(key)
}

/// The key in this file, which is made if it is not there. Nobody but us may read it.
fn stored(path: &Path) -> io::Result<Key> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => made(path),
        text => read(&text?),
    }
}

/// The key in a file, if there is one.
pub(crate) fn kept(path: &Path) -> io::Result<Option<Key>> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        text => read(&text?).map(Some),
    }
}

/// Puts a key into its file. Another one that is there gets another name, which is given back.
pub(crate) fn put(path: &Path, key: &Key) -> io::Result<Option<PathBuf>> {
    let aside = match kept(path) {
        Ok(Some(there)) if there == *key => return Ok(None),
        Ok(None) => None,
        Ok(Some(_)) | Err(_) => {
            let name = |number: u32| path.with_extension(format!("key.before-restore-{number}"));
            let aside = (1..NAMES).map(name).find(|aside| !aside.exists());
            let aside = aside.ok_or_else(|| io::Error::other("too many keys were put aside here"))?;
            fs::rename(path, &aside)?;
            Some(aside)
        }
    };
    write(path, key)?;
    Ok(aside)
}

fn read(text: &str) -> io::Result<Key> {
    let bytes = URL_SAFE_NO_PAD.decode(text.trim()).unwrap_or_default();
    bytes.try_into().map_err(|_| io::Error::other("it does not hold a key of 32 bytes in base64url"))
}

/// Makes a key, unless another process is first.
fn made(path: &Path) -> io::Result<Key> {
    let key = fresh()?;
    match write(path, &key) {
        Ok(()) => Ok(key),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read(&fs::read_to_string(path)?),
        Err(error) => Err(error),
    }
}

/// Writes a key where none is. The file has its name only when it is whole.
fn write(path: &Path, key: &Key) -> io::Result<()> {
    let draft =
        path.with_extension(format!("key.{:016x}", u64::from_le_bytes(*fresh()?.first_chunk().unwrap_or(&[0; 8]))));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&draft)?;
    let written = file.write_all(URL_SAFE_NO_PAD.encode(key).as_bytes()).and_then(|()| file.sync_all());
    let named = written.and_then(|()| fs::hard_link(&draft, path));
    fs::remove_file(&draft)?;
    named
}

#[cfg(test)]
mod tests {
    use bridge::Seal;

    use super::*;

    fn key(byte: u8) -> SealKey {
        SealKey::new(&[byte; 32]).unwrap()
    }

    #[test]
    fn whoever_comes_at_the_same_time_gets_the_same_key() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..20 {
            let path = folder.path().join(round.to_string()).join(KEY_FILE);
            let keys: Vec<Key> = std::thread::scope(|scope| {
                let all: Vec<_> = (0..8).map(|_| scope.spawn(|| stored(&path).unwrap())).collect();
                all.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(keys.iter().all(|key| *key == keys[0]));
            assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        }
    }

    /// A server beside another has nothing of its database, and opens what the other sealed.
    #[test]
    fn beside_a_database_its_seals_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data/sessions.db");
        let yaml = format!("session: {{sqlite: {{path: '{}'}}}}", path.display());
        fs::write(folder.path().join("godex.yaml"), yaml).unwrap();
        let none = |_: &str| None;
        let sources = crate::config::Sources {
            config_path: None,
            cwd: folder.path(),
            home: None,
            env: &none,
            overrides: crate::config::Overrides::default(),
        };
        let session = crate::config::load(&sources).unwrap().session;
        let beside = session.clone().beside();
        assert!(matches!(beside.backend, Backend::Memory { .. }));
        let store = store::Store::memory(store::MemoryLimits::default()).unwrap();
        let seal = |session| SealKey::of(session, &store).unwrap().tenant(&Tenant::default());
        let sealed = seal(&beside).seal(b"thought");
        assert_eq!(seal(&session).open(&sealed).as_deref(), Some(&b"thought"[..]));
        assert!(!path.exists() && path.with_file_name(KEY_FILE).exists());
    }

    #[test]
    fn opens_for_its_tenant_only_and_unchanged_only() {
        let seal = key(1).tenant(&Tenant::new("a"));
        let sealed = seal.seal(b"thought");
        assert_eq!(seal.open(&sealed).as_deref(), Some(&b"thought"[..]));
        assert_ne!(sealed, seal.seal(b"thought"), "no two seals are alike");
        assert!(!sealed.contains("thought"));
        assert_eq!(key(1).tenant(&Tenant::new("b")).open(&sealed), None, "another tenant");
        assert_eq!(key(2).tenant(&Tenant::new("a")).open(&sealed), None, "another key");
        assert_eq!(seal.open(&sealed.replacen("gx1.", "gx2.", 1)), None, "another version");
        for at in VERSION.len()..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert_ne!(
                seal.open(str::from_utf8(&changed).unwrap()).as_deref(),
                Some(&b"thought"[..]),
                "changed at {at}"
            );
        }
        for foreign in ["", "gx1.", "gx1.AAAA", "gAAAAABfernet", "gx1.\u{e9}"] {
            assert_eq!(seal.open(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn a_code_is_of_its_key_tenant_purpose_and_parts() {
        let mac = |byte: u8, tenant: &str, purpose: &str, parts: &[&[u8]]| {
            key(byte).tenant(&Tenant::new(tenant)).mac(purpose, parts)
        };
        let codes = [
            mac(1, "a", "p", &[b"x", b"y"]),
            mac(2, "a", "p", &[b"x", b"y"]),
            mac(1, "b", "p", &[b"x", b"y"]),
            mac(1, "a", "q", &[b"x", b"y"]),
            mac(1, "a", "p", &[b"xy"]),
            mac(1, "a", "p", &[b"x", b"", b"y"]),
            mac(1, "a", "p", &[b"", b"xy"]),
            mac(1, "a", "p", &[]),
        ];
        assert_eq!(codes[0], mac(1, "a", "p", &[b"x", b"y"]));
        assert_eq!(codes.iter().collect::<std::collections::BTreeSet<_>>().len(), codes.len());
    }

    #[test]
    fn seals_from_before_tenants_had_one_name_still_open_for_the_one_tenant() {
        let old = TenantSeal { key: key(1), bound_to: VERSION.to_owned(), once_bound_to: None }.seal(b"thought");
        let opened = |tenant: Tenant| key(1).tenant(&tenant).open(&old);
        assert_eq!(opened(Tenant::default()).as_deref(), Some(&b"thought"[..]));
        assert_eq!((opened(Tenant::new("a")), opened(Tenant::new(""))).0, None);
        let new = key(1).tenant(&Tenant::default()).seal(b"thought");
        assert_eq!(TenantSeal { key: key(1), bound_to: VERSION.to_owned(), once_bound_to: None }.open(&new), None);
    }

    #[test]
    fn the_key_is_made_once_and_kept_to_ourselves() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(KEY_FILE);
        let key = stored(&path).unwrap();
        assert_eq!(stored(&path).unwrap(), key);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        fs::write(&path, "short").unwrap();
        assert!(stored(&path).unwrap_err().to_string().contains("32 bytes"));
    }

    #[test]
    fn a_configured_secret_gives_the_same_key_everywhere() {
        assert_eq!(derived("x"), derived("x"));
        assert_ne!(derived("x"), derived("y"));
    }
}

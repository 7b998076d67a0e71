//! `server.tls`: the certificate that clients are shown, and its key. Both are files, read when the server starts and
//! whenever they change.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::key::Keys;
use super::{Purpose, Sources, locate, table};

/// Larger ones are something else.
const LARGEST: u64 = 1 << 20;

/// Where the certificate and its key are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsConfig {
    /// PEM: the server's own certificate, then those that lead to one that clients know.
    pub cert: PathBuf,
    /// PEM, not encrypted.
    pub key: PathBuf,
}

/// Why the files cannot be used: which one, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsProblem {
    pub file: PathBuf,
    pub message: String,
    of_key: bool,
}

impl TlsProblem {
    pub(crate) fn of_cert(config: &TlsConfig, message: String) -> Self {
        Self { file: config.cert.clone(), message, of_key: false }
    }
}

impl fmt::Display for TlsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.message)
    }
}

impl std::error::Error for TlsProblem {}

impl TlsConfig {
    /// Both files as they are now.
    pub(crate) fn load(&self) -> Result<CertifiedKey, TlsProblem> {
        let of_cert = |message| TlsProblem::of_cert(self, message);
        let of_key = |message: String| TlsProblem { file: self.key.clone(), message, of_key: true };
        let text = read(&self.cert).map_err(of_cert)?;
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
        let chain = chain
            .ok()
            .filter(|chain| !chain.is_empty())
            .ok_or_else(|| of_cert("holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)".to_owned()))?;
        let text = read(&self.key).map_err(of_key)?;
        let key = PrivateKeyDer::from_pem_slice(&text).map_err(|_| {
            of_key(
                "holds no private key in PEM form (-----BEGIN PRIVATE KEY-----); an encrypted one cannot be used"
                    .into(),
            )
        })?;
        let signing = default_provider().key_provider.load_private_key(key);
        let signing = signing.map_err(|_| of_key("its private key is of a kind that cannot be used".to_owned()))?;
        let pair = CertifiedKey::new(chain, Arc::clone(&signing));
        match pair.keys_match() {
            Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => Ok(pair),
            Err(rustls::Error::InconsistentKeys(_)) => {
                Err(of_key(format!("is not the key of the certificate in {}", self.cert.display())))
            }
            Err(_) => Err(of_cert("the certificate cannot be read".to_owned())),
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    let file = std::fs::metadata(path).map_err(unreadable)?;
    if !file.is_file() || file.len() > LARGEST {
        return Err("is no file in PEM form".to_owned());
    }
    std::fs::read(path).map_err(unreadable)
}

pub(super) fn config(keys: &mut Keys<'_>, sources: &Sources<'_>) -> Option<TlsConfig> {
    let (cert, key) = (keys.field(&table::SERVER_TLS_CERT), keys.field(&table::SERVER_TLS_KEY));
    let (cert, key) = match (cert, key) {
        (Some(cert), Some(key)) => (cert, key),
        (None, None) => return None,
        (Some(given), None) => {
            given.problem("needs `server.tls.key` beside it", None);
            return None;
        }
        (None, Some(given)) => {
            given.problem("needs `server.tls.cert` beside it", None);
            return None;
        }
    };
    let config = TlsConfig { cert: locate::expand(&cert.text()?, sources), key: locate::expand(&key.text()?, sources) };
    // Who only looks need not be allowed to read the key.
    if sources.overrides.purpose == Purpose::Serve
        && let Err(problem) = config.load()
    {
        let field = if problem.of_key { key } else { cert };
        field.problem(problem.to_string(), None);
    }
    Some(config)
}

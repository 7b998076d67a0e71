//! The way to a provider: a proxy, certificates of one's own, HTTP/2.

use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use providers::yaml::Field;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use url::Url;

use super::key::Keys;
use super::{Secret, Sources, locate, provider_table as table};

/// What differs from the usual. There is no switch that turns the check of certificates off.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TransportConfig {
    /// None: no proxy, whatever the environment says.
    pub proxy: Option<Proxy>,
    pub ca: Option<ExtraRoots>,
    pub http2: bool,
}

/// A proxy that speaks HTTP: asked for a tunnel to `https` targets, and to forward to `http` ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// `host:port`.
    pub authority: String,
    /// The value of `Proxy-Authorization`.
    pub authorization: Option<Secret>,
}

/// Certificates that are trusted beside the system's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtraRoots {
    pub path: PathBuf,
    pub certificates: Vec<CertificateDer<'static>>,
}

pub(super) fn read(keys: &mut Keys<'_>, sources: &Sources<'_>) -> TransportConfig {
    // An empty one is none: `${HTTPS_PROXY:-}`.
    let given = |field: &Field<'_>| field.string().is_none_or(|text| !text.trim().is_empty());
    TransportConfig {
        proxy: keys.field(&table::PROXY).filter(given).and_then(|field| proxy(&field)),
        ca: keys.field(&table::CA).and_then(|field| roots(&field, sources)),
        http2: keys.get(&table::HTTP2),
    }
}

/// Problems do not quote the URL, because it may hold a password.
fn proxy(field: &Field<'_>) -> Option<Proxy> {
    let text = field.text()?;
    let url = Url::parse(&text).ok().filter(|url| url.scheme() == "http");
    let Some((url, host)) = url.as_ref().and_then(|url| Some((url, url.host_str()?))) else {
        field.problem("must be a URL such as http://proxy.example.com:3128", None);
        return None;
    };
    if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
        field.problem("must be an address only, without a path", None);
    }
    let authorization = (!url.username().is_empty()).then(|| {
        let mut pair = decode(url.username());
        pair.push(b':');
        pair.extend(decode(url.password().unwrap_or_default()));
        Secret::new(format!("Basic {}", STANDARD.encode(pair)))
    });
    Some(Proxy { authority: format!("{host}:{}", url.port_or_known_default().unwrap_or(80)), authorization })
}

/// Takes `%XX` back.
fn decode(text: &str) -> Vec<u8> {
    percent_encoding::percent_decode_str(text).collect()
}

fn roots(field: &Field<'_>, sources: &Sources<'_>) -> Option<ExtraRoots> {
    let path = locate::expand(&field.text()?, sources);
    let bytes = std::fs::read(&path).map_err(|error| field.problem(format!("cannot be read: {error}"), None)).ok()?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Some(ExtraRoots { path, certificates }),
        _ => {
            field.problem("holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)", None);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_in_a_password_are_taken_back() {
        for (text, expected) in [("", ""), ("a%40b", "a@b"), ("%", "%"), ("%4", "%4"), ("%zz", "%zz"), ("%41%42", "AB")]
        {
            assert_eq!(decode(text), expected.as_bytes(), "{text}");
        }
    }
}

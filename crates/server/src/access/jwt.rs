//! A token of an identity provider (RFC 7519) and the keys that sign them (RFC 7517). Only what a public key verifies is
//! taken: a token that names no algorithm, or one with a shared secret, is none. The key says with which algorithms it may
//! be used, and never the token alone.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey,
    VerificationAlgorithm,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

/// Longer ones are none.
const LONGEST: usize = 16 << 10;
/// An issuer has a few: those that sign, and those that have.
const MOST_KEYS: usize = 64;

/// How a token is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Es256,
    Es384,
    EdDsa,
}

/// One key of an issuer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Signer {
    kid: Option<String>,
    /// What it is for, if its issuer says so.
    algorithm: Option<Algorithm>,
    key: PublicKey,
}

#[derive(Debug, PartialEq, Eq)]
enum PublicKey {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// Why a token is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoToken {
    /// It is not one.
    Malformed,
    /// Not with these keys; there may be newer ones.
    UnknownSigner,
    /// It was not made by who signs, or was changed.
    Forged,
}

#[derive(Deserialize)]
struct Header<'a> {
    #[serde(borrow)]
    alg: std::borrow::Cow<'a, str>,
    #[serde(borrow, default)]
    kid: Option<std::borrow::Cow<'a, str>>,
    /// What must be understood, and is not.
    #[serde(default)]
    crit: Option<serde::de::IgnoredAny>,
}

/// Whether somebody may have meant it as a token: three parts in base64.
pub(super) fn looks_like(sent: &[u8]) -> bool {
    let part = |part: &[u8]| part.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    let parts = || sent.split(|byte| *byte == b'.');
    sent.len() <= LONGEST && parts().count() == 3 && parts().all(|bytes| !bytes.is_empty() && part(bytes))
}

/// What a token says, as JSON, if one of these has signed it.
pub(super) fn verified(sent: &[u8], signers: &[Signer]) -> Result<Vec<u8>, NoToken> {
    let text = str::from_utf8(sent).map_err(|_| NoToken::Malformed)?;
    let (signed, signature) = text.rsplit_once('.').ok_or(NoToken::Malformed)?;
    let (header, claims) = signed.split_once('.').ok_or(NoToken::Malformed)?;
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| NoToken::Malformed);
    let (header, claims, signature) = (decode(header)?, decode(claims)?, decode(signature)?);
    let header: Header<'_> = serde_json::from_slice(&header).map_err(|_| NoToken::Malformed)?;
    if header.crit.is_some() {
        return Err(NoToken::Malformed);
    }
    let algorithm = Algorithm::named(&header.alg).ok_or(NoToken::Malformed)?;
    let mut fitting = signers.iter().filter(|signer| {
        let is_meant = header.kid.is_none() || signer.kid.as_deref() == header.kid.as_deref();
        is_meant && signer.fits(algorithm)
    });
    let signer = fitting.next().ok_or(NoToken::UnknownSigner)?;
    // Whoever does not say which key it is must leave no doubt.
    if header.kid.is_none() && fitting.next().is_some() {
        return Err(NoToken::Malformed);
    }
    if signer.has_signed(algorithm, signed.as_bytes(), &signature) { Ok(claims) } else { Err(NoToken::Forged) }
}

impl Algorithm {
    const ALL: [(&str, Self); 7] = [
        ("RS256", Self::Rs256),
        ("RS384", Self::Rs384),
        ("RS512", Self::Rs512),
        ("PS256", Self::Ps256),
        ("ES256", Self::Es256),
        ("ES384", Self::Es384),
        ("EdDSA", Self::EdDsa),
    ];

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find_map(|(known, algorithm)| (known == name).then_some(algorithm))
    }
}

impl Signer {
    fn fits(&self, algorithm: Algorithm) -> bool {
        use Algorithm as Alg;
        let is_possible = match self.key {
            PublicKey::Rsa { .. } => matches!(algorithm, Alg::Rs256 | Alg::Rs384 | Alg::Rs512 | Alg::Ps256),
            PublicKey::P256(_) => algorithm == Alg::Es256,
            PublicKey::P384(_) => algorithm == Alg::Es384,
            PublicKey::Ed25519(_) => algorithm == Alg::EdDsa,
        };
        is_possible && self.algorithm.is_none_or(|own| own == algorithm)
    }

    fn has_signed(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let plain = |how: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(how, key).verify(message, signature).is_ok()
        };
        match (&self.key, algorithm) {
            (PublicKey::Rsa { n, e }, algorithm) => {
                let how: &RsaParameters = match algorithm {
                    Algorithm::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
                    Algorithm::Rs384 => &RSA_PKCS1_2048_8192_SHA384,
                    Algorithm::Rs512 => &RSA_PKCS1_2048_8192_SHA512,
                    Algorithm::Ps256 => &RSA_PSS_2048_8192_SHA256,
                    _ => return false,
                };
                RsaPublicKeyComponents { n, e }.verify(how, message, signature).is_ok()
            }
            (PublicKey::P256(point), Algorithm::Es256) => plain(&ECDSA_P256_SHA256_FIXED, point),
            (PublicKey::P384(point), Algorithm::Es384) => plain(&ECDSA_P384_SHA384_FIXED, point),
            (PublicKey::Ed25519(key), Algorithm::EdDsa) => plain(&ED25519, key),
            _ => false,
        }
    }
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<serde_json::Value>,
}

/// Members that are not known say nothing to us.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// The keys of an issuer that can be used here; those of other kinds, and for other purposes, are left out.
pub(super) fn signers(key_set: &[u8]) -> Result<Vec<Signer>, String> {
    let set: KeySet = serde_json::from_slice(key_set).map_err(|error| format!("it is no set of keys: {error}"))?;
    // One that cannot be read is no reason to do without the others.
    let keys = set.keys.into_iter().filter_map(|key| serde_json::from_value(key).ok());
    let signers: Vec<Signer> = keys.filter_map(signer).take(MOST_KEYS).collect();
    if signers.is_empty() { Err("it has no key that can be used here".to_owned()) } else { Ok(signers) }
}

fn signer(jwk: Jwk) -> Option<Signer> {
    let verifies = |operations: &Vec<String>| operations.iter().any(|operation| operation == "verify");
    if jwk.purpose.as_deref().is_some_and(|purpose| purpose != "sig") || !jwk.key_ops.as_ref().is_none_or(verifies) {
        return None;
    }
    let algorithm = match jwk.alg.as_deref() {
        Some(alg) => Some(Algorithm::named(alg)?),
        None => None,
    };
    let bytes = |part: Option<&String>| URL_SAFE_NO_PAD.decode(part?).ok();
    let point = |size: usize| {
        let (x, y) = (bytes(jwk.x.as_ref())?, bytes(jwk.y.as_ref())?);
        (x.len() == size && y.len() == size).then(|| [&[4][..], &x, &y].concat())
    };
    let key = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
        ("RSA", _) => {
            let (n, e) = (bytes(jwk.n.as_ref())?, bytes(jwk.e.as_ref())?);
            // Weaker ones sign nothing.
            PublicKey::Rsa { n: Some(n).filter(|n| (256..=1024).contains(&n.len()))?, e }
        }
        ("EC", Some("P-256")) => PublicKey::P256(point(32)?),
        ("EC", Some("P-384")) => PublicKey::P384(point(48)?),
        ("OKP", Some("Ed25519")) => PublicKey::Ed25519(bytes(jwk.x.as_ref()).filter(|x| x.len() == 32)?),
        _ => return None,
    };
    Some(Signer { kid: jwk.kid, algorithm, key })
}

//! `session.encryption`: the keys of the database. They come from variables or a file, and are never shown.

use std::path::Path;

use base64::Engine;
use base64::alphabet::{Alphabet, STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use providers::yaml::Field;
use store::{Encryption, StoreKey};

use super::key::Keys;
use super::{EncryptionConfig, Sources, locate, table};

/// What to do about a key that is none.
const HELP: &str = "`openssl rand -base64 32` makes one";

pub(super) fn read(sources: &Sources<'_>, keys: &mut Keys<'_>) -> EncryptionConfig {
    let given = keys.field(&table::SESSION_ENCRYPTION_KEY);
    let file = keys.field(&table::SESSION_ENCRYPTION_KEY_FILE);
    if let (Some(_), Some(file)) = (&given, &file) {
        file.problem("there is `session.encryption.key` already; one of them is enough", None);
    }
    let path = file.as_ref().and_then(|field| Some(locate::expand(&field.text()?, sources)));
    let key = match (&given, &file, &path) {
        (Some(field), ..) => parsed(field),
        (None, Some(field), Some(path)) => from_file(field, path),
        _ => None,
    };
    let previous = keys.field(&table::SESSION_ENCRYPTION_PREVIOUS).and_then(|field| field.list()).unwrap_or_default();
    let previous = previous.iter().filter_map(parsed).collect();
    EncryptionConfig { keys: Encryption { key, previous }, key_file: path.filter(|_| given.is_none()) }
}

fn parsed(field: &Field<'_>) -> Option<StoreKey> {
    let key = decoded(&field.text()?).and_then(|bytes| StoreKey::new(&bytes).ok());
    if key.is_none() {
        field.problem("expected 32 bytes in base64 or hexadecimal", Some(HELP.to_owned()));
    }
    key
}

fn from_file(field: &Field<'_>, path: &Path) -> Option<StoreKey> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            field.problem(format!("the file cannot be read: {error}"), None);
            return None;
        }
    };
    if others_read(path) {
        field.problem("everybody on this machine can read the file", Some("`chmod o-rwx` it".to_owned()));
        return None;
    }
    let key = decoded(&text).and_then(|bytes| StoreKey::new(&bytes).ok());
    if key.is_none() {
        field.problem("the file does not hold 32 bytes in base64 or hexadecimal", Some(HELP.to_owned()));
    }
    key
}

#[cfg(unix)]
fn others_read(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o007 != 0)
}

#[cfg(not(unix))]
fn others_read(_: &Path) -> bool {
    false
}

/// Either alphabet of base64, with or without its end, or hexadecimal.
fn decoded(text: &str) -> Option<[u8; 32]> {
    let text = text.trim();
    if text.len() == 64 {
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let pair = str::from_utf8(pair).ok().filter(|pair| !pair.starts_with('+'))?;
            *byte = u8::from_str_radix(pair, 16).ok()?;
        }
        return Some(bytes);
    }
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let decode = |alphabet: &Alphabet| GeneralPurpose::new(alphabet, config).decode(text).ok();
    decode(&STANDARD).or_else(|| decode(&URL_SAFE))?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_32_bytes_however_they_are_spelled() {
        let bytes: [u8; 32] = std::array::from_fn(|n| 0xf0_u8.wrapping_add(u8::try_from(n * 7).unwrap()));
        let standard = base64::engine::general_purpose::STANDARD.encode(bytes);
        let url = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes);
        let hex = bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
        assert_ne!(standard.trim_end_matches('='), url);
        for good in [&standard, &url, &hex, &hex.to_uppercase(), &format!("  {standard}\n")] {
            assert_eq!(decoded(good), Some(bytes), "{good}");
        }
        for bad in ["", "secret", &hex[..62], &format!("{hex}00"), &hex.replace('f', "g"), &"+1".repeat(32), "é"] {
            assert_eq!(decoded(bad), None, "{bad}");
        }
    }
}

//! The specs that the tests speak of by name.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use providers::{Library, Provider, resolve_named};

/// A spec of the library; each is read once.
pub(crate) fn provider(name: &str) -> Arc<Provider> {
    static KNOWN: LazyLock<Mutex<HashMap<String, Arc<Provider>>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap();
    let resolve = || Arc::new(resolve_named(Library::BUILTIN, name, &|_| None).unwrap_or_else(|p| panic!("{p}")));
    Arc::clone(known.entry(name.to_owned()).or_insert_with(resolve))
}

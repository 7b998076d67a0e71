//! `docs/config.md`.

use providers::{Library, resolve_named};
use server::config::{Described, KEYS, KeyStatus, PROVIDER_KEYS, VARIABLES};

use super::{check, code, table};

fn keys<C>(keys: &[&dyn Described<C>], is_wanted: impl Fn(&dyn Described<C>) -> bool) -> String {
    let row = |key: &&&dyn Described<C>| [code(key.path()), key.kind(), key.default(), key.about().to_owned()];
    let wanted: Vec<_> = keys.iter().filter(|key| is_wanted(**key)).collect();
    table(["key", "takes", "default", "what for"], wanted.iter().map(row))
}

/// Two columns are enough for what should not be written any more.
fn retired<C>(keys: &[&dyn Described<C>], status: KeyStatus) -> Vec<[String; 2]> {
    let retired = keys.iter().filter(|key| key.status() == status);
    retired.map(|key| [code(key.path()), key.about().to_owned()]).collect()
}

#[test]
fn keys_are_documented() {
    const SECTIONS: &[&str] = &[
        "server",
        "keys",
        "oidc",
        "admin",
        "limits",
        "default_provider",
        "models",
        "providers",
        "session",
        "webhooks",
        "compat",
        "output",
        "tools",
        "images",
        "files",
        "context",
        "resilience",
        "trace",
        "metrics",
        "otel",
        "logging",
    ];
    let section_of = |path: &'static str| path.split('.').next().unwrap_or_default();
    for key in KEYS.iter().filter(|key| key.status() == KeyStatus::Current) {
        assert!(SECTIONS.contains(&section_of(key.path())), "{} is in no table", key.path());
    }
    let section = |names: &[&str]| {
        keys(KEYS, |key| key.status() == KeyStatus::Current && names.contains(&section_of(key.path())))
    };
    let older: Vec<_> =
        retired(KEYS, KeyStatus::Older).into_iter().chain(retired(PROVIDER_KEYS, KeyStatus::Older)).collect();
    let variables =
        VARIABLES.iter().map(|variable| [code(variable.name), code(variable.key), variable.expected.to_owned()]);
    let specs = Library::BUILTIN.names().filter_map(|name| {
        let provider = resolve_named(Library::BUILTIN, name, &|_| None).unwrap();
        let variables: Vec<String> = provider.key_env.iter().map(|name| code(name)).collect();
        (!variables.is_empty()).then(|| [variables.join(", "), code(name)])
    });
    let tables = [
        ("server", section(&["server"])),
        ("access", section(&["keys", "oidc", "admin"])),
        ("limits", section(&["limits"])),
        ("models", section(&["default_provider", "models", "providers"])),
        ("provider", keys(PROVIDER_KEYS, |key| key.status() == KeyStatus::Current)),
        ("session", section(&["session"])),
        ("webhooks", section(&["webhooks"])),
        ("compat", section(&["compat", "output", "tools", "images", "files", "context"])),
        ("resilience", section(&["resilience"])),
        ("traces", section(&["trace"])),
        ("metrics", section(&["metrics", "otel"])),
        ("logging", section(&["logging"])),
        ("older", table(["key", "what for"], older)),
        ("variables", table(["variable", "wins over", "takes"], variables)),
        ("key variables", table(["variable", "spec"], specs)),
    ];
    check("docs/config.md", &tables);
}

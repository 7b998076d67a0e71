//! The configuration that the wizard writes: what was chosen, as commented YAML.

use std::fmt::Write;

use server::config::{LogLevel, Secret, quote};

use crate::args::BackendName;

/// Where Postgres is, as far as a file should say.
pub(super) const DATABASE_VARIABLE: &str = "GODEX_DATABASE_URL";

pub(super) struct Draft {
    pub(super) host: Option<String>,
    pub(super) port: u16,
    /// The first is the default one.
    pub(super) providers: Vec<Chosen>,
    pub(super) backend: BackendName,
    pub(super) level: LogLevel,
}

pub(super) struct Chosen {
    /// Also that of its section.
    pub(super) spec: String,
    /// Where it is not the spec's own.
    pub(super) base_url: Option<String>,
    pub(super) key: Key,
    /// The first is what clients get that ask for a name nobody knows.
    pub(super) models: Vec<String>,
    /// Whether the spec, or the server itself, lists them.
    pub(super) listed: bool,
}

pub(super) enum Key {
    /// None is needed.
    Unneeded,
    Variable(String),
    Typed(Secret),
}

/// Whether keys that were typed are in the text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keys {
    Whole,
    Masked,
}

impl Draft {
    pub(super) fn yaml(&self, keys: Keys) -> String {
        let mut out = "# The configuration of godex, written by `godex init`. `godex config check` looks for mistakes in it, `godex\n\
                       # config print` shows all keys with their values. ${NAME} is a variable of the environment.\n\n\
                       server:\n"
            .to_owned();
        // Writing to a String cannot fail.
        if let Some(host) = &self.host {
            let _ = writeln!(out, "  host: {}", quote(host));
        }
        let _ = writeln!(out, "  # Clients' base_url is http://127.0.0.1:{0}/v1\n  port: {0}\n", self.port);
        if let Some(first) = self.providers.first() {
            let _ = writeln!(
                out,
                "# Who is asked for models that name no provider; others are asked for as PROVIDER/MODEL.\n\
                 default_provider: {}\n",
                quote(&first.spec)
            );
        }
        self.providers(&mut out, keys);
        self.models(&mut out);
        self.rest(&mut out);
        out
    }

    fn providers(&self, out: &mut String, keys: Keys) {
        if self.providers.is_empty() {
            out.push_str("# None has a key yet: the offline `demo` model answers. `godex providers` lists those that are known.\nproviders: {}\n\n");
            return;
        }
        out.push_str("providers:\n");
        for Chosen { spec, base_url, key, models, listed } in &self.providers {
            let _ = writeln!(
                out,
                "  # `godex providers show {spec}` prints what is known of it.\n  {}:\n    spec: {}",
                quote(spec),
                quote(spec)
            );
            if let Some(url) = base_url {
                let _ = writeln!(out, "    endpoint:\n      base_url: {}", quote(url));
            }
            match key {
                Key::Unneeded => {}
                Key::Variable(name) => {
                    let _ = writeln!(out, "    credentials:\n      api_key: ${{{name}}}");
                }
                Key::Typed(key) => {
                    let key = match keys {
                        Keys::Whole => quote(key.expose()),
                        Keys::Masked => masked(key.expose()),
                    };
                    let _ = writeln!(
                        out,
                        "    credentials:\n      # Better in the environment: ${{NAME}}.\n      api_key: {key}"
                    );
                }
            }
            if !listed && !models.is_empty() {
                let names: Vec<String> = models.iter().map(|model| quote(model)).collect();
                let _ = writeln!(out, "    models: [{}]", names.join(", "));
            }
        }
        out.push('\n');
    }

    fn models(&self, out: &mut String) {
        let Some(first) = self.providers.first() else { return };
        let Some(model) = first.models.first() else { return };
        let target = quote(&format!("{}/{model}", first.spec));
        let _ = writeln!(
            out,
            "models:\n  aliases:\n    # Every name that is nothing else, such as one that a client has built in.\n    \"*\": {target}\n"
        );
    }

    fn rest(&self, out: &mut String) {
        out.push_str("session:\n  # Where responses and conversations are kept: sqlite, postgres (for several instances) or memory.\n");
        let _ = match self.backend {
            BackendName::Sqlite => writeln!(out, "  backend: sqlite\n"),
            BackendName::Memory => writeln!(out, "  backend: memory\n"),
            BackendName::Postgres => {
                writeln!(out, "  backend: postgres\n  postgres:\n    url: ${{{DATABASE_VARIABLE}}}\n")
            }
        };
        let _ = writeln!(out, "logging:\n  # trace, debug, info, warn or error\n  level: {}", self.level.name());
    }

    /// The variables that it reads.
    pub(super) fn variables(&self) -> Vec<&str> {
        let of_keys = self.providers.iter().filter_map(|provider| match &provider.key {
            Key::Variable(name) => Some(name.as_str()),
            Key::Unneeded | Key::Typed(_) => None,
        });
        of_keys.chain((self.backend == BackendName::Postgres).then_some(DATABASE_VARIABLE)).collect()
    }
}

/// The beginning and the end of a long key, nothing of a short one.
fn masked(key: &str) -> String {
    let letters: Vec<char> = key.chars().collect();
    match letters.as_slice() {
        [a, b, c, d, middle @ .., w, x, y, z] if middle.len() > 8 => format!("{a}{b}{c}{d}…{w}{x}{y}{z}"),
        _ => "••••".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_key_little_is_shown() {
        for (key, shown) in
            [("sk-0123456789abcdef", "sk-0…cdef"), ("0123456789abcdef", "••••"), ("short", "••••"), ("", "••••")]
        {
            assert_eq!(masked(key), shown);
        }
    }
}

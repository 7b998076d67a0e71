//! The effective configuration as YAML that loads again. Secrets are never in it.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use wire::visible::{quoted, visible};

use super::{Alias, Backend, Config, ProviderConfig, TransportConfig, address, session, units};

impl Config {
    /// Every setting with the value that is in force, secrets as `<redacted>`.
    pub fn print(&self) -> String {
        let mut out = Out(String::new());
        out.line(0, &format!("# from: {}", visible(&self.origin.to_string())));
        self.print_server(&mut out);
        out.pair(0, "default_provider", &quote(&self.default_provider));
        self.print_models(&mut out);
        out.line(0, "providers:");
        for provider in &self.providers {
            print_provider(&mut out, provider);
        }
        self.print_session(&mut out);
        self.print_rest(&mut out);
        out.0
    }

    fn print_server(&self, out: &mut Out) {
        let server = &self.server;
        out.line(0, "server:");
        out.pair(2, "host", &quote(&server.host));
        out.pair(2, "port", &server.port.to_string());
        out.pair(2, "idle_timeout", &server.idle_timeout.map_or(0, |idle| idle.as_secs()).to_string());
        out.pair(2, "allow_unauthenticated", &server.allow_unauthenticated.to_string());
        out.pair(2, "max_body_bytes", &server.max_body_bytes.to_string());
        out.pair(2, "max_connections", &server.max_connections.to_string());
        out.pair(2, "heartbeat", &server.heartbeat.as_secs().to_string());
        out.pair(2, "drain_timeout", &units::print_duration(server.drain_timeout));
        out.pair(2, "allowed_hosts", &list(server.allowed_hosts.names()));
        out.line(2, "cors:");
        out.pair(4, "origins", &list(server.cors.origins.iter().map(String::as_str)));
        let limits = &self.limits;
        out.line(0, "limits:");
        out.pair(2, "body_bytes_in_flight", &units::print_size(limits.body_bytes_in_flight as u64));
        out.pair(2, "write_stall", &units::print_duration(limits.write_stall));
    }

    fn print_models(&self, out: &mut Out) {
        if !self.aliases.is_empty() {
            out.line(0, "models:");
            out.line(2, "aliases:");
        }
        for (alias, target) in &self.aliases {
            out.pair(4, &quote(alias), &alias_text(target));
        }
    }

    fn print_session(&self, out: &mut Out) {
        let session = &self.session;
        out.line(0, "session:");
        match &session.backend {
            Backend::Memory { max_bytes } => {
                out.pair(2, "backend", "memory");
                out.pair(2, "max_bytes", &max_bytes.to_string());
            }
            Backend::Postgres(postgres) => {
                let options = postgres.options;
                out.pair(2, "backend", "postgres");
                out.line(2, "postgres:");
                out.pair(4, "url", &postgres.url.to_string());
                out.pair(4, "connections", &options.connections.to_string());
                out.pair(4, "acquire_ms", &options.acquire.as_millis().to_string());
                out.pair(4, "statement_ms", &options.statement.as_millis().to_string());
                out.pair(4, "retry_ms", &options.retry.as_millis().to_string());
            }
            Backend::Sqlite { path } => {
                out.pair(2, "backend", "sqlite");
                out.line(2, "sqlite:");
                out.pair(4, "path", &quote(&path_text(path)));
            }
        }
        out.pair(2, "unknown_previous_response_status", &session.unknown_previous_response_status.to_string());
        out.pair(2, "strict", &session.strict.to_string());
        out.pair(2, "ttl", &session::print_lifetime(session.ttl));
        if session.seal_key.is_some() {
            out.line(2, "# seal_key: <redacted>");
        }
        out.line(2, "chain:");
        out.pair(4, "max_depth", &session.chain.max_depth.to_string());
        out.pair(4, "include_incomplete", &session.chain.include_incomplete.to_string());
        out.pair(4, "replay_instructions", &session.chain.replay_instructions.to_string());
    }

    fn print_rest(&self, out: &mut Out) {
        out.line(0, "compat:");
        out.pair(2, "strict", &self.compat.strict.to_string());
        if let Some(repair) = self.compat.repair_history {
            out.pair(2, "repair_history", &repair.to_string());
        }
        out.line(0, "output:");
        out.pair(2, "check", &quote(self.output.check.name()));
        out.pair(2, "repair", &quote(self.output.repair.name()));
        let resilience = &self.resilience;
        out.line(0, "resilience:");
        out.pair(2, "retries", &resilience.retries.to_string());
        out.pair(2, "backoff_ms", &milliseconds(resilience.backoff));
        out.pair(2, "max_retry_after", &resilience.max_wait.as_secs().to_string());
        out.pair(2, "budget_percent", &resilience.budget_percent.to_string());
        out.pair(2, "breaker_failures", &resilience.breaker_failures.to_string());
        out.line(0, "logging:");
        out.pair(2, "level", self.logging.level.name());
        out.pair(2, "format", self.logging.format.name());
        out.line(2, "console:");
        out.pair(4, "enabled", &self.logging.console.to_string());
        for key in &self.unused {
            out.line(0, &format!("# no effect in this version: {key}"));
        }
    }
}

fn print_provider(out: &mut Out, config: &ProviderConfig) {
    out.line(2, &format!("{}:", quote(&config.name)));
    print_spec(out, config);
    if !config.base_url.is_empty() {
        out.line(4, "endpoint:");
        out.pair(6, "base_url", &quote(&config.base_url));
        if address::base_url(&config.base_url, false).is_err() {
            out.pair(6, "allow_plain_http", "true");
        }
        out.pair(6, "path", &quote(&config.provider.path));
        out.pair(6, "query", &config.provider.shown_query());
    }
    match config.api_keys.as_slice() {
        [] => {}
        [key] => {
            out.line(4, "credentials:");
            out.pair(6, "api_key", &key.to_string());
        }
        keys => {
            out.line(4, "credentials:");
            out.pair(
                6,
                "api_keys",
                &format!("[{}]", keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
            );
        }
    }
    print_transport(out, &config.transport);
    let timeouts = &config.timeouts;
    out.line(4, "timeouts:");
    out.pair(6, "connect_ms", &milliseconds(timeouts.connect));
    out.pair(6, "first_byte_ms", &milliseconds(timeouts.first_byte));
    out.pair(6, "whole_ms", &milliseconds(timeouts.whole));
    out.pair(6, "idle_ms", &milliseconds(timeouts.idle));
    out.pair(6, "total_ms", &milliseconds(timeouts.total));
    print_models_of(out, config);
    if !config.headers.is_empty() {
        out.line(4, "headers:");
    }
    for (name, value) in &config.headers {
        out.pair(6, &quote(name), &value.to_string());
    }
}

fn print_transport(out: &mut Out, transport: &TransportConfig) {
    if let Some(proxy) = &transport.proxy {
        let user = if proxy.authorization.is_some() { "redacted@" } else { "" };
        out.pair(4, "proxy", &quote(&format!("http://{user}{}", proxy.authority)));
    }
    if let Some(roots) = &transport.ca {
        out.pair(4, "ca", &quote(&path_text(&roots.path)));
    }
    if transport.http2 {
        out.pair(4, "http2", "true");
    }
}

fn alias_text(alias: &Alias) -> String {
    let names = || alias.targets.iter().map(|target| quote(&target.to_string()));
    match &alias.weights {
        Some(weights) => {
            let target = |(name, weight): (String, &u32)| format!("{{model: {name}, weight: {weight}}}");
            format!("{{targets: [{}]}}", names().zip(weights).map(target).collect::<Vec<_>>().join(", "))
        }
        None if alias.targets.len() == 1 => names().collect(),
        None => format!("[{}]", names().collect::<Vec<_>>().join(", ")),
    }
}

/// A built-in spec by its name, the user's as it says it.
fn print_spec(out: &mut Out, config: &ProviderConfig) {
    let Some(lines) = config.provider.user_spec() else {
        return out.pair(4, "spec", &quote(&config.provider.spec_name));
    };
    // An empty one extends the root, and must not read as none at all.
    let nothing = lines.is_empty().then(|| "extends: openai-compatible".to_owned());
    out.line(4, "spec:");
    for line in lines.into_iter().chain(nothing) {
        out.line(6, &line);
    }
}

/// The names that are listed, and what the user says of single models.
fn print_models_of(out: &mut Out, config: &ProviderConfig) {
    let entries = config.provider.entry_models();
    if entries.is_empty() {
        return out.pair(4, "models", &list(config.models.iter().map(String::as_str)));
    }
    out.line(4, "models:");
    for model in &config.models {
        out.line(6, &format!("- {}", quote(model)));
    }
    for line in entries {
        out.line(4, &line);
    }
}

struct Out(String);

impl Out {
    fn line(&mut self, indent: usize, text: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "{:indent$}{text}", "");
    }

    fn pair(&mut self, indent: usize, key: &str, value: &str) {
        self.line(indent, &format!("{key}: {value}"));
    }
}

fn milliseconds(duration: Duration) -> String {
    duration.as_millis().to_string()
}

fn list<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    format!("[{}]", texts.map(quote).collect::<Vec<_>>().join(", "))
}

fn path_text(path: &Path) -> String {
    path.display().to_string()
}

/// A string as it may stand in YAML: bare when nothing in it could mean something else.
fn quote(text: &str) -> String {
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let word = matches!(text, "true" | "false" | "null" | "yes" | "no" | "on" | "off");
    if starts_well && text.chars().all(plain) && !word {
        return text.to_owned();
    }
    // A JSON string is a YAML string; `${` would be a variable when read again.
    quoted(&text.replace("${", "$${"))
}

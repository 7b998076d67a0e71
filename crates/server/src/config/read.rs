//! The file as a whole: reads every section, then checks what concerns more than one.

use std::time::Duration;

use bridge::{Checks, Repair};
use providers::yaml::{Document, Field, Reader, Section};

use super::place::{Place, variable};
use super::provider::Providers;
use super::{
    CompatConfig, Config, Origin, OutputConfig, Problems, ServerConfig, Sources, address, alias, defaults, limits,
    logging, provider, resilience, session, size, units, unused, web,
};

const MAX_BODY: u64 = 32 << 20;

/// Seconds; clients keep connections in their pools for less.
const IDLE: u64 = 300;

pub(super) fn read(document: &Document, sources: &Sources<'_>, origin: Origin) -> Result<Config, Problems> {
    let reader = Reader::new(document, sources.env);
    let mut root = reader.root();
    let mut unused_keys = Vec::new();
    let server = server(&reader, sources, root.section("server"));
    let mut providers = provider::read(&reader, sources, &origin, &mut root);
    if origin == Origin::Defaults {
        providers.usable = defaults::from_environment(&reader, sources);
        providers.names = providers.usable.iter().map(|provider| provider.name.clone()).collect();
    }
    let first = providers.names.first().cloned();
    if !providers.names.iter().any(|name| name == "demo") {
        providers.usable.extend(defaults::demo(sources));
        providers.names.push("demo".to_owned());
    }
    let default_provider = default_provider(&reader, sources, root.field("default_provider"), first, &providers);
    let mut models = root.section("models");
    let aliases = models.field("aliases").map(|field| alias::read(&field, &providers)).unwrap_or_default();
    models.finish();
    let limits = limits::read(root.section("limits"), server.max_body_bytes);
    let config = Config {
        origin,
        server,
        default_provider,
        aliases,
        providers: providers.usable,
        session: session::read(sources, root.section("session")),
        compat: compat(root.section("compat")),
        output: output(root.section("output")),
        resilience: resilience::read(root.section("resilience")),
        limits,
        logging: logging::read(&reader, sources, root.section("logging"), &mut unused_keys),
        unused: {
            unused::trace(root.section("trace"), &mut unused_keys);
            unused::web_search(root.section("web_search"), &mut unused_keys);
            unused_keys
        },
    };
    root.finish();
    let problems = reader.finish();
    if problems.is_empty() { Ok(config) } else { Err(Problems(problems)) }
}

fn server(reader: &Reader<'_>, sources: &Sources<'_>, mut section: Section<'_>) -> ServerConfig {
    let file_port = section.read("port", |field| field.integer(1..=65535));
    let file_port = file_port.and_then(|port| u16::try_from(port).ok());
    let environment = variable(reader, sources, "GODEX_PORT", "a port from 0 to 65535", |text| text.parse().ok());
    let port = sources.overrides.port.or(environment).or(file_port);
    let idle = section.read("idle_timeout", |field| field.integer(0..=86_400)).unwrap_or(IDLE);
    let allow_unauthenticated = section.read("allow_unauthenticated", Field::boolean).unwrap_or(false);
    let host = host(reader, sources, section.field("host"), allow_unauthenticated);
    let hosts = section.read("allowed_hosts", web::allowed_hosts).unwrap_or_default();
    let count = |field: &Field<'_>| field.integer(1..=u64::from(u32::MAX));
    let drain = |field: &Field<'_>| units::duration(field, Duration::ZERO..=Duration::from_hours(24));
    let config = ServerConfig {
        allowed_hosts: hosts.with(&host),
        cors: web::cors(section.section("cors")),
        host,
        port: port.unwrap_or(5678),
        idle_timeout: (idle > 0).then(|| Duration::from_secs(idle)),
        allow_unauthenticated,
        max_body_bytes: size(section.read("max_body_bytes", count).unwrap_or(MAX_BODY)),
        max_connections: size(section.read("max_connections", count).unwrap_or(10_000)),
        header_timeout: Duration::from_secs(10),
        heartbeat: Duration::from_secs(section.read("heartbeat", |field| field.integer(1..=3600)).unwrap_or(15)),
        drain_timeout: section.read("drain_timeout", drain).unwrap_or(Duration::from_secs(30)),
    };
    section.finish();
    config
}

/// Where to listen. Beyond this machine only on request: whoever reaches the port spends the provider's keys.
fn host(reader: &Reader<'_>, sources: &Sources<'_>, field: Option<Field<'_>>, open: bool) -> String {
    let environment = || variable(reader, sources, "GODEX_HOST", "a host", |text| Some(text.to_owned()));
    let file = field.and_then(|field| Some((field.text()?, Place::File(field))));
    let (host, place) = if let Some(host) = &sources.overrides.host {
        (host.trim().to_owned(), Place::Flag("--host"))
    } else if let Some(host) = environment() {
        (host, Place::Variable("GODEX_HOST"))
    } else {
        file.unwrap_or_else(|| ("127.0.0.1".to_owned(), Place::Default("server.host")))
    };
    let host = address::unbracket(&host).to_owned();
    if !open && !address::is_loopback(&host) {
        let message = "without API keys, anybody who reaches this address could use the providers' keys";
        let help = "listen on 127.0.0.1, or set `server.allow_unauthenticated: true` if something else guards the port";
        place.problem(reader, message, Some(help.to_owned()));
    }
    host
}

fn default_provider(
    reader: &Reader<'_>,
    sources: &Sources<'_>,
    field: Option<Field<'_>>,
    first: Option<String>,
    providers: &Providers,
) -> String {
    let environment =
        variable(reader, sources, "GODEX_DEFAULT_PROVIDER", "a provider's name", |text| Some(text.to_owned()));
    let mut written = None;
    let (name, place) = if let Some(name) = environment {
        (name, Place::Variable("GODEX_DEFAULT_PROVIDER"))
    } else if let Some((name, field)) = field.and_then(|field| Some((field.text()?, field))) {
        written = Some(field.found());
        (name, Place::File(field))
    } else {
        (first.unwrap_or_else(|| "demo".to_owned()), Place::Default("default_provider"))
    };
    if !providers.names.contains(&name) {
        let said = written.unwrap_or_else(|| format!("`{name}`"));
        place.problem(reader, format!("there is no provider {said}"), Some(configured(providers)));
    }
    name
}

pub(super) fn configured(providers: &Providers) -> String {
    format!("configured: {}", providers.names.join(", "))
}

fn compat(mut section: Section<'_>) -> CompatConfig {
    let config = CompatConfig {
        strict: section.read("strict", Field::boolean).unwrap_or(false),
        repair_history: section.read("repair_history", Field::boolean),
    };
    section.finish();
    config
}

fn output(mut section: Section<'_>) -> OutputConfig {
    let check = section.read("check", |field| field.choice(Checks::ALL, Checks::name));
    let repair = section.read("repair", |field| field.choice(Repair::ALL, Repair::name));
    section.finish();
    OutputConfig { check: check.unwrap_or_default(), repair: repair.unwrap_or_default() }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

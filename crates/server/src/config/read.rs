//! The file as a whole: reads every section, then checks what concerns more than one.

use std::time::Duration;

use providers::yaml::{Document, Field, Problem, Reader};

use super::key::Keys;
use super::keys as api_keys;
use super::provider::Providers;
use super::source::{self, ValueSource};
use super::{
    CompatConfig, Config, ContextConfig, ImagesConfig, KeyStatus, Origin, OutputConfig, Problems, Purpose,
    ServerConfig, Sources, ToolsConfig, WebsocketConfig, address, admin, alias, defaults, files, images, limits,
    logging, mcp, oidc, ports, provider, proxies, resilience, search, session, size, table, telemetry, tls, trace, web,
    webhooks,
};

/// The sections that nobody needs who only manages a server.
const OF_REQUESTS: [&str; 8] =
    ["default_provider", "images", "models", "oidc", "otel", "providers", "tools", "webhooks"];
/// What a server that runs knows.
const OF_KEYS: [&str; 1] = ["keys"];

fn is_of(sections: &[&str], problem: &Problem) -> bool {
    let section = problem.path.split(['.', '[']).next().unwrap_or_default();
    sections.contains(&section)
}

pub(super) fn read(document: &Document, sources: &Sources<'_>, origin: Origin) -> Result<Config, Problems> {
    let reader = Reader::new(document, sources.env);
    let mut keys = Keys::new(reader.root(), "");
    let memory = limits::memory(&mut keys);
    let server = server(&reader, sources, &mut keys, memory);
    let mut providers = provider::read(&reader, sources, &origin, &mut keys);
    let mut left_out = Vec::new();
    if !providers.are_named {
        let found = defaults::from_environment(&reader, sources);
        (providers.usable, left_out) = (found.providers, found.left_out);
        providers.names = providers.usable.iter().map(|provider| provider.name.clone()).collect();
    }
    let first = providers.names.first().cloned();
    if !providers.names.iter().any(|name| name == "demo") {
        providers.usable.extend(defaults::demo(sources));
        providers.names.push("demo".to_owned());
    }
    let default_provider = default_provider(&reader, sources, keys.field(&table::DEFAULT_PROVIDER), first, &providers);
    let aliases = keys.field(&table::MODELS_ALIASES).map(|field| alias::read(&field, &providers));
    let web_search = search::read(&reader, sources, &origin, &mut keys, &providers.usable);
    let limits = limits::read(&mut keys, server.max_body_bytes, memory);
    let session = session::read(sources, &mut keys);
    let config = Config {
        origin,
        server,
        admin: admin::read(&mut keys, sources),
        default_provider,
        aliases: aliases.unwrap_or_default(),
        discover: keys.get(&table::MODELS_DISCOVER),
        providers: providers.usable,
        trace: trace::read(sources, &mut keys, &session.backend),
        session,
        compat: CompatConfig {
            strict: keys.get(&table::COMPAT_STRICT),
            repair_history: keys.find(&table::COMPAT_REPAIR_HISTORY),
        },
        context: ContextConfig { rescue: keys.get(&table::CONTEXT_RESCUE) },
        tools: ToolsConfig {
            grammar: keys.get(&table::TOOLS_GRAMMAR),
            mcp: mcp::read(&mut keys, sources.env),
            web_search,
        },
        output: OutputConfig { check: keys.get(&table::OUTPUT_CHECK), repair: keys.get(&table::OUTPUT_REPAIR) },
        images: ImagesConfig { describe: keys.find(&table::IMAGES_DESCRIBE) },
        files: files::read(&mut keys),
        pdf_program: None,
        resilience: resilience::read(&mut keys),
        limits,
        keys: keys.field(&table::API_KEYS).map(|field| api_keys::read(&field)).unwrap_or_default(),
        oidc: keys.field(&table::OIDC).and_then(|field| oidc::read(&field)),
        webhooks: keys.field(&table::WEBHOOKS).map(|field| webhooks::read(&field)).unwrap_or_default(),
        metrics: telemetry::metrics(&mut keys),
        otel: telemetry::otel(&reader, sources, &mut keys),
        logging: logging::read(&reader, sources, &mut keys),
        unused: unused(&mut keys),
        left_out,
    };
    if let Some(field) = keys.field(&table::IMAGES_DESCRIBE) {
        images::check(&config, &field);
    }
    ports::check(&config, &mut keys);
    keys.finish();
    let mut problems = reader.finish();
    match sources.overrides.purpose {
        Purpose::Serve | Purpose::Look => {}
        Purpose::Manage => problems.retain(|problem| !is_of(&OF_REQUESTS, problem) && !is_of(&OF_KEYS, problem)),
        Purpose::ManageAlone => problems.retain(|problem| !is_of(&OF_REQUESTS, problem)),
    }
    if problems.is_empty() { Ok(config) } else { Err(Problems(problems)) }
}

fn server(reader: &Reader<'_>, sources: &Sources<'_>, keys: &mut Keys<'_>, memory: Option<u64>) -> ServerConfig {
    let file_port = u16::try_from(keys.get(&table::SERVER_PORT)).unwrap_or_default();
    let environment = source::PORT.find(reader, sources, |text| text.parse().ok());
    let idle = keys.get(&table::SERVER_IDLE_TIMEOUT);
    let host = host(reader, sources, keys);
    let hosts = keys.field(&table::SERVER_ALLOWED_HOSTS).as_ref().and_then(web::allowed_hosts);
    let cors = keys.field(&table::SERVER_CORS_ORIGINS).as_ref().and_then(web::cors);
    let proxies = keys.field(&table::SERVER_TRUSTED_PROXIES).as_ref().and_then(proxies::read);
    ServerConfig {
        tls: tls::config(keys, sources),
        trusted_proxies: proxies.unwrap_or_default(),
        allowed_hosts: hosts.unwrap_or_default().with(&host),
        cors: cors.unwrap_or_default(),
        host,
        port: sources.overrides.port.or(environment).unwrap_or(file_port),
        idle_timeout: (!idle.is_zero()).then_some(idle),
        allow_unauthenticated: keys.get(&table::SERVER_ALLOW_UNAUTHENTICATED),
        max_body_bytes: limits::max_body_bytes(keys, memory),
        max_connections: size(keys.get(&table::SERVER_MAX_CONNECTIONS)),
        header_timeout: Duration::from_secs(10),
        heartbeat: keys.get(&table::SERVER_HEARTBEAT),
        drain_delay: keys.get(&table::SERVER_DRAIN_DELAY),
        drain_timeout: keys.get(&table::SERVER_DRAIN_TIMEOUT),
        websocket: WebsocketConfig {
            lifetime: keys.get(&table::SERVER_WEBSOCKET_LIFETIME),
            ping: keys.get(&table::SERVER_WEBSOCKET_PING),
        },
    }
}

/// Keys that are known and checked, but that this version does nothing with: older files load, and the user is told
/// what has no effect instead of guessing.
fn unused(keys: &mut Keys<'_>) -> Vec<String> {
    let without_effect = table::KEYS.iter().filter(|key| key.status() == KeyStatus::NoEffect);
    let given = without_effect.filter(|key| keys.at(key.path()).is_some_and(|field| key.check(&field)));
    given.map(|key| key.path().to_owned()).collect()
}

/// Where to listen. Whether there is a key, which an address that others reach needs, the store knows.
fn host(reader: &Reader<'_>, sources: &Sources<'_>, keys: &mut Keys<'_>) -> String {
    let environment = || source::HOST.find(reader, sources, |text| Some(text.to_owned()));
    let written = keys.get(&table::SERVER_HOST);
    let flag = sources.overrides.host.as_ref().map(|host| host.trim().to_owned());
    address::unbracket(&flag.or_else(environment).unwrap_or(written)).to_owned()
}

fn default_provider(
    reader: &Reader<'_>,
    sources: &Sources<'_>,
    field: Option<Field<'_>>,
    first: Option<String>,
    providers: &Providers,
) -> String {
    let environment = source::DEFAULT_PROVIDER.find(reader, sources, |text| Some(text.to_owned()));
    let mut written = None;
    let (name, from) = if let Some(name) = environment {
        (name, ValueSource::Variable(source::DEFAULT_PROVIDER.name))
    } else if let Some((name, field)) = field.and_then(|field| Some((field.text()?, field))) {
        written = Some(field.found());
        (name, ValueSource::File(field))
    } else {
        (first.unwrap_or_else(|| "demo".to_owned()), ValueSource::Default(table::DEFAULT_PROVIDER.path))
    };
    if !providers.names.contains(&name) {
        let said = written.unwrap_or_else(|| format!("`{name}`"));
        from.problem(reader, format!("there is no provider {said}"), Some(configured(providers)));
    }
    name
}

pub(super) fn configured(providers: &Providers) -> String {
    format!("configured: {}", providers.names.join(", "))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

#[cfg(test)]
#[path = "address_tests.rs"]
mod address_tests;

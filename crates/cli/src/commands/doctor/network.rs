//! What is reached over the network: providers, and the places where godex itself listens.

use std::io::ErrorKind;
use std::net::{IpAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use providers::Wire;
use server::StartError;
use server::admin::{AdminClient, Unreachable, socket_problem};
use server::checkup::{self, Checkup, KeyTrial};
use server::config::{AdminListen, Config, KeyFrom, ProviderConfig, keyless};
use server::peer::Peer;

use super::{NOT_SET, machine, store};
use crate::args::variable;
use crate::commands::codex::gateway::{self, Absent};
use crate::report::Check;

/// What is done about a godex that says nothing.
const SILENT: &str = "is it stopped, or this machine busy? look at its log; else end it and start it again";

const AT_ONCE: usize = 8;
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks every provider, and says by how much their clocks are ahead.
pub(super) async fn providers(config: &Config) -> (Vec<Check>, Vec<i64>) {
    // A key that is not set was said to be missing.
    let set = |provider: &&ProviderConfig| provider.api_keys.iter().all(|key| key.expose() != NOT_SET);
    let remote = config.providers.iter().filter(|provider| provider.provider.wire != Wire::Demo).filter(set);
    // Each of several addresses for itself.
    let addresses: Vec<ProviderConfig> = remote.flat_map(ProviderConfig::each_address).collect();
    let asking: Vec<_> = addresses.iter().map(|provider| async move { (provider, asked(provider).await) }).collect();
    let found: Vec<_> = stream::iter(asking).buffered(AT_ONCE).collect().await;
    // A clock of this machine's own says nothing of it.
    let skew = |(provider, answer): &(&ProviderConfig, Result<Asked, String>)| {
        answer.as_ref().ok()?.0.clock_ahead.filter(|_| provider.base_url.starts_with("https:"))
    };
    let skews = found.iter().filter_map(skew).collect();
    let checks = found.iter().map(|(provider, answer)| {
        if let KeyFrom::Missing(variable) = &provider.key_from {
            let advice = variable.as_ref().map_or_else(
                || format!("set providers.{}.credentials.api_key", provider.name),
                |variable| format!("set {variable}"),
            );
            return Check::fail("provider", format!("{}: no key", provider.name), advice);
        }
        let several = config.provider(&provider.name).is_some_and(|whole| !whole.base_urls.is_empty());
        // One of several that does not answer is no reason not to start.
        let is_needed = provider.name == config.default_provider && !several;
        judged(provider, answer.as_ref(), is_needed, several)
    });
    (checks.collect(), skews)
}

/// What it answered, and what that says of its key.
type Asked = (Checkup, KeyTrial);

async fn asked(provider: &ProviderConfig) -> Result<Asked, String> {
    if matches!(provider.key_from, KeyFrom::Missing(_)) {
        return Err("no key".to_owned());
    }
    let answer = checkup::check(provider, PATIENCE).await?;
    let key = checkup::try_key(provider, &answer, PATIENCE).await;
    Ok((answer, key))
}

fn judged(provider: &ProviderConfig, answer: Result<&Asked, &String>, is_needed: bool, several: bool) -> Check {
    let (name, url) = (&provider.name, &provider.base_url);
    let shown = if several { format!("{name} at {url}") } else { name.clone() };
    let (answer, key) = match answer {
        Ok((answer, key)) => (answer, *key),
        Err(why) => {
            let advice = "look at the address and the network; is the server running?";
            let check = Check::fail("provider", format!("{name}: {url}: {why}"), advice);
            return if is_needed { check } else { check.softened() };
        }
    };
    let took = answer.took.as_millis();
    let said_of_key = match key {
        KeyTrial::Unsent => "no key needed",
        KeyTrial::Untried => "its list needs no key, so the key was not tried",
        KeyTrial::Tried => "key accepted",
    };
    if let Some(why) = &answer.stranger {
        return Check::fail("provider", format!("{shown}: {why}"), not_a_provider(name, url));
    }
    match answer.status {
        200 if answer.models.is_empty() => {
            Check::ok("provider", format!("{shown}: answers in {took} ms; lists no models"))
        }
        200 => {
            let said = format!("{shown}: answers in {took} ms, {said_of_key}, {} models", answer.models.len());
            match unlisted(provider, &answer.models).as_slice() {
                [] => Check::ok("provider", said),
                names => {
                    let message = format!("{said}; of those that are configured it does not list {}", names.join(", "));
                    Check::warn("provider", message, format!("look at providers.{name}.models"))
                }
            }
        }
        401 | 403 if key == KeyTrial::Unsent => {
            let advice = format!("set providers.{name}.credentials.api_key");
            Check::fail("provider", format!("{shown}: it wants a key ({})", answer.status), advice)
        }
        401 | 403 => {
            let advice = match &provider.key_from {
                KeyFrom::Variable(variable) => format!("set {variable} to a key of this provider's"),
                KeyFrom::File(place) => format!("correct the key at {place}"),
                KeyFrom::Command(program) => {
                    format!("look at what {program} prints: it is no token of this provider's")
                }
                KeyFrom::Missing(_) | KeyFrom::Nowhere => format!("set providers.{name}.credentials.api_key"),
            };
            Check::fail("provider", format!("{shown}: the key is refused ({})", answer.status), advice)
        }
        // Whoever has no list was asked for one all the same.
        404 | 405 if provider.provider.discovery.path.is_none() => {
            Check::ok("provider", format!("{shown}: answers in {took} ms; it has no list of models"))
        }
        status @ (404 | 405) => {
            let message = format!("{shown}: answers {status} when asked for its models");
            Check::warn("provider", message, format!("is {url} its address?"))
        }
        429 => Check::warn("provider", format!("{shown}: too many requests (429)"), "look at the account's limits"),
        status @ 500.. => {
            let advice = "it may be down; look at its status page";
            Check::warn("provider", format!("{shown}: it answers {status}"), advice)
        }
        status => Check::warn("provider", format!("{shown}: it answers {status}"), format!("is {url} its address?")),
    }
}

/// What to do where something else answers than a list of models.
fn not_a_provider(name: &str, url: &str) -> String {
    let what = "such an answer is another server's, a proxy's, or a login page of the network's";
    format!("look at providers.{name}.endpoint.base_url: is {url} its address, with all of its path? {what}")
}

/// The models that the file names and the provider does not. What a spec names is a default, and not somebody's wish.
fn unlisted<'p>(provider: &'p ProviderConfig, listed: &[String]) -> Vec<&'p str> {
    let usual = keyless(&provider.provider.spec_name, &variable).map(|spec| spec.models).unwrap_or_default();
    // Some lists have `models/NAME` or `owner/NAME`.
    let is_listed = |name: &str| listed.iter().any(|listed| listed == name || listed.rsplit('/').next() == Some(name));
    let named = provider.models.iter().filter(|name| !usual.contains(name)).map(String::as_str);
    named.filter(|name| !is_listed(name)).collect()
}

/// The port for clients, the one for the operator, and the one for metrics.
pub(super) async fn listeners(config: &Config) -> Vec<Check> {
    // Asked once: one that does not answer is waited for.
    let asked = Box::pin(AdminClient::running(config)).await;
    let (check, running) = port(config, asked.as_ref()).await;
    let mut checks = vec![check, admin(config, asked.map(drop), running)];
    checks.extend(store::holder(config, running).await);
    checks.extend(config.metrics.listen.as_ref().filter(|_| config.metrics.enabled).map(|at| metrics(at, running)));
    checks
}

/// What a start refuses: an address that others reach, and nothing that says who may ask.
pub(super) async fn guard(config: &Config) -> Option<Check> {
    let server = &config.server;
    let is_guarded = !config.keys.is_empty() || config.oidc.is_some();
    if is_guarded || server.allow_unauthenticated || is_this_machine(&server.host) {
        return None;
    }
    // Where the keys cannot be read, that was said of the store.
    if store::has_keys(config).await? {
        return None;
    }
    let said = StartError::Unguarded { host: server.host.clone() }.to_string();
    let (message, advice) =
        said.split_once("; ").unwrap_or((said.as_str(), "make a key with `godex keys create NAME`"));
    Some(Check::fail("access", message, advice))
}

/// Whether only this machine can reach the host.
fn is_this_machine(host: &str) -> bool {
    let plain = host.trim_start_matches('[').trim_end_matches(']');
    match plain.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => {
            let name = plain.trim_end_matches('.').to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}

/// Whoever runs already has it.
fn metrics(address: &str, running: bool) -> Check {
    match TcpListener::bind(address) {
        Ok(_) => Check::ok("metrics", format!("{address} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse && running => {
            Check::ok("metrics", format!("{address}: taken, as by the godex that runs"))
        }
        Err(error) => {
            let advice = "end what uses it, or take another with metrics.listen: godex does not start without it";
            Check::fail("metrics", format!("{address}: {error}"), advice)
        }
    }
}

/// Whether somebody takes spans: an empty export is answered at once.
pub(super) async fn collector(config: &Config) -> Option<Check> {
    let otel = config.otel.as_ref()?;
    let headers: Vec<(&str, &str)> = otel.headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    let url = &otel.endpoint;
    let asked = match Peer::new(url, None, &headers, &variable) {
        Ok(peer) => peer.get("", PATIENCE).await,
        Err(why) => Err(why),
    };
    let advice = "look at otel.endpoint; godex serves without it, and drops spans";
    Some(match asked {
        Ok(answer) if matches!(answer.status, 401 | 403) => {
            Check::warn("otel", format!("{url}: refused ({})", answer.status), "look at otel.headers")
        }
        // Collectors take nothing but POST there.
        Ok(_) => Check::ok("otel", format!("{url} answers")),
        Err(why) => Check::warn("otel", format!("{url}: {why}"), advice),
    })
}

/// Whether a godex of this configuration runs there, too.
async fn port(config: &Config, asked: Result<&AdminClient, &Unreachable>) -> (Check, bool) {
    let address = config.server.address();
    if config.server.port == 0 {
        return (Check::ok("port", "any that is free"), false);
    }
    // A name may be several addresses; one that can be had is enough.
    let bound = TcpListener::bind(&address);
    let kind = match bound {
        Ok(_) => return (Check::ok("port", format!("{address} is free")), false),
        Err(error) if error.kind() == ErrorKind::AddrInUse => None,
        Err(error) => Some(error),
    };
    match kind {
        Some(error) if error.kind() == ErrorKind::PermissionDenied => {
            let advice = "ports below 1024 need a right of their own; take another with server.port";
            (Check::fail("port", format!("{address}: {error}"), advice), false)
        }
        Some(error) => {
            let advice = "is server.host an address of this machine?";
            (Check::fail("port", format!("{address}: {error}"), advice), false)
        }
        None => match gateway::look(&gateway::url(config), config).await {
            Ok(()) => (Check::ok("port", format!("{address}: a godex like this one runs there")), true),
            // By TLS it may be known under another name only.
            Err(absent @ (Absent::Nobody | Absent::Stranger)) if asked.is_ok() => {
                (Check::ok("port", format!("{address}: taken, as by the godex that runs; here {absent}")), true)
            }
            Err(Absent::Nobody) if matches!(asked, Err(Unreachable::Silent(_))) => {
                let message = format!("{address}: taken, as by the godex that does not answer");
                (Check::fail("port", message, SILENT), true)
            }
            Err(absent @ (Absent::Nobody | Absent::Stranger)) => {
                let advice = "end what uses it, or take another with server.port";
                (Check::fail("port", format!("{address} is taken, and {absent}"), advice), false)
            }
            Err(absent) => {
                let advice = "fine if that is meant; else restart it, or take another port";
                (Check::warn("port", format!("{address}: {absent}"), advice), true)
            }
        },
    }
}

fn admin(config: &Config, asked: Result<(), Unreachable>, running: bool) -> Check {
    let listen = &config.admin.listen;
    match asked {
        Ok(()) => Check::ok("admin", format!("{listen}: the godex that runs answers")),
        Err(Unreachable::Off) => Check::ok("admin", "off"),
        Err(Unreachable::Nobody(_)) if running => {
            let advice = "was it started by another user, or with another admin.listen?";
            Check::warn("admin", format!("{listen}: a godex runs, but nobody listens here"), advice)
        }
        Err(Unreachable::Nobody(_)) => match unlistenable(listen) {
            None => Check::ok("admin", format!("{listen}: nobody listens, no godex runs")),
            Some(why) => {
                let advice = "godex serves without it; name another admin.listen, or `off`";
                Check::warn("admin", format!("{listen} cannot be made: {why}"), advice)
            }
        },
        Err(other @ (Unreachable::Another(..) | Unreachable::Other(..))) => Check::warn(
            "admin",
            other.to_string(),
            "name its configuration with --config, or give this one another admin.listen",
        ),
        Err(stranger @ Unreachable::Stranger(_)) => {
            let advice = "end what uses it, or take another with admin.listen: godex does not start without it";
            Check::fail("admin", stranger.to_string(), advice)
        }
        Err(silent @ Unreachable::Silent(_)) => Check::fail("admin", silent.to_string(), SILENT),
        Err(Unreachable::Store(_)) => Check::warn("admin", format!("{listen}: not known"), "first mend the store"),
        Err(other) => Check::fail("admin", other.to_string(), "look at admin.listen and admin.token"),
    }
}

/// Why a start would have no admin listener.
fn unlistenable(listen: &AdminListen) -> Option<String> {
    let AdminListen::Unix(path) = listen else { return None };
    let folder = path.parent().unwrap_or(Path::new("."));
    machine::writable(folder).err().or_else(|| socket_problem(path))
}

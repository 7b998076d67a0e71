//! Every key of a provider's entry in `godex.yaml`; see [`super::table`].

use std::time::Duration;

use super::key::{Described, Key, KeyStatus, keys};
use super::kind::{Flag, Special, Time, Unset};
use super::units::Bare;
use super::{ProviderConfig, address, print};

keys! { PROVIDER_KEYS of ProviderConfig {
    /// How the provider is spoken to: a built-in spec, a file of yours (seen from this one), or a spec right here.
    SPEC = "providers.NAME.spec", Special: Special("name, file or mapping"), otherwise "the entry's own name"
        => |config| Some(print::spec(config));
    /// Where the provider is: a URL, without a query, to which the path is added.
    BASE_URL = "providers.NAME.endpoint.base_url", Special: Special("URL"), otherwise "the spec's"
        => |config| (remote(config) && config.base_urls.is_empty() && !by_token(config)).then(|| print::quote(&config.base_url));
    /// Several addresses of the same models, such as replicas of one's own server, in the place of `base_url`. The turns of
    /// a conversation go to one of them while it is up and not crowded.
    BASE_URLS = "providers.NAME.endpoint.base_urls", Special: Special("list of up to 64 URLs"), otherwise "`base_url`"
        => |config| (!config.base_urls.is_empty()).then(|| {
            format!("[{}]", config.base_urls.iter().map(|url| print::quote(url)).collect::<Vec<_>>().join(", "))
        });
    /// Where each of several addresses is asked every two seconds whether it is up: a path after the base URL, or `/../` and
    /// one after the host. An answer of 500 or more says that it wants no new requests.
    HEALTH = "providers.NAME.endpoint.health", Special: Special("path"), otherwise "where the spec lists models"
        => |config| config.health.as_ref().map(|path| print::quote(path));
    /// Which of the spec's addresses it is, instead of a URL; `godex providers show NAME` lists them as `endpoints`.
    ENDPOINT_NAME = "providers.NAME.endpoint.name", Special: Special("name"), otherwise "the spec's"
        => |config| config.provider.endpoint_name.as_deref().filter(|_| by_token(config)).map(print::quote);
    /// What fills the placeholders of the address, such as `{region: eu-west-1}` for `https://{region}.example.com`.
    PARAMS = "providers.NAME.endpoint.params", Special: Special("mapping"), otherwise "the variables that the spec names"
        => |config| by_token(config).then(|| print::params(config)).flatten();
    /// Whether keys and prompts may go to a public host without encryption.
    ALLOW_PLAIN_HTTP = "providers.NAME.endpoint.allow_plain_http", Flag: Flag(false)
        => |config| (remote(config) && config.addresses().iter().any(|url| address::base_url(url, false).is_err()))
            .then_some(true);
    /// What comes after the base URL; `{model}` is the model's name.
    PATH = "providers.NAME.endpoint.path", Special: Special("path"), otherwise "the spec's"
        => |config| remote(config).then(|| print::quote(&config.provider.path));
    /// The query of every request.
    QUERY = "providers.NAME.endpoint.query", Special: Special("mapping"), otherwise "the spec's"
        => |config| remote(config).then(|| config.provider.shown_query());
    /// The key. Keys belong in the environment: `${MY_KEY}`.
    API_KEY = "providers.NAME.credentials.api_key", Special: Special("text, a secret"),
        otherwise "the variable that the spec names, for the spec's own address"
        => |config| match config.api_keys.as_slice() {
            [key] => Some(key.to_string()),
            _ => None,
        };
    /// Several keys, of which each conversation has one; one that is refused rests.
    API_KEYS = "providers.NAME.credentials.api_keys", Special: Special("list of up to 64 texts, secrets"), otherwise "none"
        => |config| (config.api_keys.len() > 1).then(|| {
            format!("[{}]", config.api_keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        });
    /// A proxy for this provider, `http://user:password@host:port`. Variables such as `HTTPS_PROXY` are not read;
    /// `${HTTPS_PROXY:-}` reads one.
    PROXY = "providers.NAME.proxy", Special: Special("URL, a secret"), otherwise "none"
        => |config| config.transport.proxy.as_ref().map(print::proxy);
    /// A file with certificates (PEM) that are trusted beside the system's.
    CA = "providers.NAME.ca", Special: Special("path"), otherwise "none"
        => |config| config.transport.ca.as_ref().map(|roots| print::quote(&roots.path.display().to_string()));
    /// Whether HTTP/2 is used.
    HTTP2 = "providers.NAME.http2", Flag: Flag(false) => |config| config.transport.http2.then_some(true);
    /// How long a connection may take.
    CONNECT = "providers.NAME.timeouts.connect_ms", Time: wait(Duration::from_secs(5))
        => |config| Some(config.timeouts.connect);
    /// How long until a stream begins.
    FIRST_BYTE = "providers.NAME.timeouts.first_byte_ms", Time: wait(Duration::from_mins(2))
        => |config| Some(config.timeouts.first_byte);
    /// How long until an answer comes that is not streamed: it comes when it is whole.
    WHOLE = "providers.NAME.timeouts.whole_ms", Unset<Time>: Unset(wait(Duration::from_mins(10))),
        otherwise "`first_byte_ms` if that is given, else `{}`"
        => |config| Some(config.timeouts.whole);
    /// How long a stream may be silent. Clients give up after 300 seconds: godex should be first to say so.
    IDLE = "providers.NAME.timeouts.idle_ms", Time: wait(Duration::from_secs(290)) => |config| Some(config.timeouts.idle);
    /// How long the whole request may take.
    TOTAL = "providers.NAME.timeouts.total_ms", Time: wait(Duration::from_hours(1)) => |config| Some(config.timeouts.total);
    /// The same as `timeouts.first_byte_ms`.
    TIMEOUT = "providers.NAME.timeout_ms", Unset<Time>: Unset(wait(Duration::from_mins(2))),
        otherwise "`timeouts.first_byte_ms`"; Older => |_| None;
    /// The models that are listed; and entries `{match: PATTERN, …}` with what a spec may say of single models.
    MODELS = "providers.NAME.models", Special: Special("list of names and entries"), otherwise "the spec's"
        => |config| Some(print::models(config));
    /// What models cost, by their names or patterns, in US dollars for a million tokens: `{"gpt-5*": {input: 1.25,
    /// cached_input: 0.125, output: 10}}`; the words are those of `prices` in a spec, over which these lie.
    PRICES = "providers.NAME.prices", Special: Special("mapping"), otherwise "the spec's, for its own address"
        => |config| print::prices(config);
    /// Headers that every request has; a value may be a secret.
    HEADERS = "providers.NAME.headers", Special: Special("mapping"), otherwise "none" => |config| print::headers(config);
} }

/// What keys of an entry begin with.
pub(super) const PREFIX: &str = "providers.NAME.";

const fn wait(default: Duration) -> Time {
    Time { bare: Bare::Milliseconds, range: Duration::from_millis(1)..=Duration::from_hours(24), default }
}

/// The demo model is inside this binary and has no address.
fn remote(config: &ProviderConfig) -> bool {
    !config.base_url.is_empty()
}

/// A token is for the spec's own address, which is told without the address itself.
fn by_token(config: &ProviderConfig) -> bool {
    config.provider.token.is_some() && config.api_keys.is_empty()
}

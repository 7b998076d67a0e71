//! `metrics` and `otel`: what is told to those who watch servers, and where.

use providers::yaml::{Field, Reader};
use url::Url;

use super::key::Keys;
use super::{Secret, Sources, address, print, provider, source, table};

/// What a collector's address is followed by where traces are taken.
const TRACES: &str = "/v1/traces";

/// Numbers for a Prometheus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricsConfig {
    pub enabled: bool,
    /// `host:port` of a listener of its own, which asks for no token.
    pub listen: Option<String>,
}

/// Spans for an OpenTelemetry collector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtelConfig {
    /// Where traces are posted to, as a whole.
    pub endpoint: String,
    /// Sent with every request.
    pub headers: Vec<(String, Secret)>,
    /// What this server is called there.
    pub service_name: String,
    /// How many of the requests that no client's trace decides about.
    pub sample_percent: u8,
}

pub(super) fn metrics(keys: &mut Keys<'_>) -> MetricsConfig {
    let enabled = keys.get(&table::METRICS_ENABLED);
    let listen = keys.field(&table::METRICS_LISTEN).and_then(|field| listen(&field));
    MetricsConfig { enabled, listen }
}

pub(super) fn otel(reader: &Reader<'_>, sources: &Sources<'_>, keys: &mut Keys<'_>) -> Option<OtelConfig> {
    let written = keys.field(&table::OTEL_ENDPOINT).and_then(|field| {
        let text = field.text()?;
        traces_url(&text).map_err(|why| field.problem(why, None)).ok()
    });
    let headers = keys.field(&table::OTEL_HEADERS).and_then(|field| provider::headers(&field)).unwrap_or_default();
    let name = keys.get(&table::OTEL_SERVICE_NAME);
    let sample_percent = u8::try_from(keys.get(&table::OTEL_SAMPLE_PERCENT)).unwrap_or(100);
    let endpoint = source::OTEL_ENDPOINT.find(reader, sources, |text| traces_url(text).ok()).or(written)?;
    let more = source::OTEL_HEADERS.find(reader, sources, listed_headers).unwrap_or_default();
    let service_name = source::OTEL_SERVICE_NAME.find(reader, sources, |text| Some(text.to_owned())).unwrap_or(name);
    let mut headers: Vec<(String, Secret)> = headers;
    headers.retain(|(name, _)| !more.iter().any(|(other, _)| other == name));
    headers.extend(more);
    Some(OtelConfig { endpoint, headers, service_name, sample_percent })
}

/// A collector's address is where all of its signals are taken; one that names the traces' own is whole.
fn traces_url(text: &str) -> Result<String, &'static str> {
    let url = Url::parse(text.trim()).map_err(|_| "expected a URL such as `http://127.0.0.1:4318`")?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err("expected an http or https URL: spans are sent as OTLP over HTTP, not gRPC");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not hold a user or a password; use `otel.headers`");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must not have a query");
    }
    let base = url.as_str().trim_end_matches('/');
    Ok(if base.ends_with(TRACES) { base.to_owned() } else { format!("{base}{TRACES}") })
}

/// `name=value,name=value`, with percent signs as in addresses: so the variable has them.
fn listed_headers(text: &str) -> Option<Vec<(String, Secret)>> {
    let header = |entry: &str| {
        let (name, value) = entry.split_once('=')?;
        let name = name.trim().to_ascii_lowercase();
        let value = percent_encoding::percent_decode_str(value.trim()).decode_utf8().ok()?.into_owned();
        let good = provider::may_be_set(&name) && provider::can_be_sent(&value);
        good.then(|| (name, Secret::new(value)))
    };
    text.split(',').filter(|entry| !entry.trim().is_empty()).map(header).collect()
}

fn listen(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    let host_and_port = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    match host_and_port {
        Some((host, port)) if !host.is_empty() => Some(address::authority(address::unbracket(host), port)),
        _ => field.expected("`HOST:PORT`"),
    }
}

/// As it was meant: without what is added to it.
pub(super) fn print_endpoint(otel: &OtelConfig) -> String {
    print::quote(otel.endpoint.strip_suffix(TRACES).unwrap_or(&otel.endpoint))
}

pub(super) fn print_headers(otel: &OtelConfig) -> Option<String> {
    print::secrets(&otel.headers)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Config, Overrides, load};
    use super::*;

    fn config(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("godex.yaml");
        std::fs::write(&path, text).unwrap();
        let overrides = Overrides::default();
        let sources = Sources { config_path: Some(&path), cwd: Path::new("/cwd"), home: None, env, overrides };
        load(&sources).map_err(|problems| problems.to_string())
    }

    #[test]
    fn spans_go_where_the_file_or_the_environment_says() {
        for (text, variable, endpoint) in [
            ("", None, None),
            ("otel: {service_name: a}", None, None),
            ("otel: {endpoint: 'http://127.0.0.1:4318'}", None, Some("http://127.0.0.1:4318/v1/traces")),
            ("otel: {endpoint: 'http://127.0.0.1:4318/'}", None, Some("http://127.0.0.1:4318/v1/traces")),
            ("otel: {endpoint: 'https://c.example/x/v1/traces'}", None, Some("https://c.example/x/v1/traces")),
            ("", Some("http://c:1"), Some("http://c:1/v1/traces")),
            ("otel: {endpoint: 'http://a:1'}", Some("http://b:1"), Some("http://b:1/v1/traces")),
        ] {
            let env = |name: &str| variable.filter(|_| name == "OTEL_EXPORTER_OTLP_ENDPOINT").map(str::to_owned);
            let config = config(text, &env).unwrap();
            assert_eq!(config.otel.as_ref().map(|otel| &*otel.endpoint), endpoint, "{text} {variable:?}");
        }
    }

    #[test]
    fn headers_are_secret_wherever_they_come_from() {
        let env = |name: &str| match name {
            "OTEL_EXPORTER_OTLP_HEADERS" => Some("X-Token=env%20secret, b=2".to_owned()),
            "OTEL_SERVICE_NAME" => Some("edge".to_owned()),
            _ => None,
        };
        let text = "otel: {endpoint: 'http://a:1', headers: {x-token: file-secret, x-other: file-secret}}";
        let config = config(text, &env).unwrap();
        let otel = config.otel.as_ref().unwrap();
        let headers: Vec<_> = otel.headers.iter().map(|(name, value)| (&**name, value.expose())).collect();
        assert_eq!(headers, [("x-other", "file-secret"), ("x-token", "env secret"), ("b", "2")]);
        assert_eq!(otel.service_name, "edge");
        let shown = format!("{}{config:?}", config.print());
        assert!(
            !shown.contains("secret,") && !shown.contains("file-secret") && !shown.contains("env secret"),
            "{shown}"
        );
    }

    #[test]
    fn mistakes_are_told() {
        for (text, expected) in [
            ("otel: {endpoint: 'grpc://a:4317'}", "not gRPC"),
            ("otel: {endpoint: nowhere}", "expected a URL"),
            ("otel: {endpoint: 'http://u:p@a:1'}", "use `otel.headers`"),
            ("otel: {endpoint: 'http://a:1?x=1'}", "must not have a query"),
            ("otel: {endpoint: 'http://a:1', sample_percent: 101}", "otel.sample_percent"),
            ("otel: {endpoint: 'http://a:1', headers: {host: a}}", "cannot be set"),
            ("metrics: {listen: 9464}", "metrics.listen"),
            ("metrics: {listen: 'a:b'}", "expected `HOST:PORT`"),
        ] {
            let problems = config(text, &|_| None).unwrap_err();
            assert!(problems.contains(expected), "{text}: {problems}");
        }
        let env = |name: &str| (name == "OTEL_EXPORTER_OTLP_HEADERS").then(|| "no-value".to_owned());
        let problems = config("otel: {endpoint: 'http://a:1'}", &env).unwrap_err();
        assert!(problems.contains("OTEL_EXPORTER_OTLP_HEADERS"), "{problems}");
    }
}

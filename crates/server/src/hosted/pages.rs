//! Pages of the web, fetched for a model: only from public addresses, only so much, only text. Each redirect is looked at
//! as the first address was. Sends nothing of the client's; what goes wrong is said in words for the model.

use std::io::Read;
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use url::Url;
use web::page::{self, Kind};
pub(crate) use web::page::{Page, find, part};

use crate::outbound::{Outbound, OutboundBody, OutboundError, Reach};
use crate::output::aside;

/// For all of it, redirects included.
const DEADLINE: Duration = Duration::from_secs(15);
const MOST_REDIRECTS: usize = 5;
/// Of a body, both as it comes and as it is when it is inflated. What is longer is cut there.
const MOST_BYTES: usize = 2 << 20;
const LONGEST_URL: usize = 8 << 10;
/// The largest zstd window: 8 MiB. A larger one is a way to make us allocate.
const ZSTD_WINDOW_LOG: u32 = 23;

const ACCEPT: &str =
    "text/html, application/xhtml+xml, text/plain;q=0.9, application/json;q=0.8, text/*;q=0.7, */*;q=0.1";
const AGENT: &str = concat!("godex/", env!("CARGO_PKG_VERSION"));

/// Opens a page. `allowed_domains`: only these and what is below them, unless there are none. Dropped, it stops.
pub(crate) async fn open(outbound: &Outbound, url: &str, allowed_domains: &[String]) -> Result<Page, String> {
    let opening = Box::pin(fetch(outbound, url, allowed_domains));
    let fetched = tokio::time::timeout(DEADLINE, opening).await;
    let fetched = fetched.unwrap_or_else(|_| Err(format!("it did not come within {} seconds", DEADLINE.as_secs())));
    // Taking it apart is work, and its author decides how much.
    let page = fetched.and_then(|fetched| aside(|| read(&fetched)));
    page.map_err(|why| format!("The page could not be opened: {why}."))
}

/// A page as it came.
struct Fetched {
    url: Url,
    headers: HeaderMap,
    body: Vec<u8>,
    /// There was more of it.
    is_cut: bool,
}

async fn fetch(outbound: &Outbound, url: &str, allowed_domains: &[String]) -> Result<Fetched, String> {
    let mut url = Url::parse(url.trim()).map_err(|_| "its address is no URL such as https://example.com/page")?;
    for _ in 0..=MOST_REDIRECTS {
        url.set_fragment(None);
        check(&url, allowed_domains)?;
        let answer = outbound.send(request(&url)?, Reach::Public).await.map_err(|error| told(&url, &error))?;
        let status = answer.status();
        if leads_elsewhere(status) {
            let location = answer.headers().get(header::LOCATION).and_then(|location| location.to_str().ok());
            let next = location.and_then(|location| url.join(location).ok());
            url = next.ok_or_else(|| format!("{} redirects to nowhere", host(&url)))?;
            continue;
        }
        if !status.is_success() {
            return Err(format!("{} answered {status}", host(&url)));
        }
        kind(answer.headers(), b"")?;
        return collect(url, answer).await;
    }
    Err(format!("it was redirected more than {MOST_REDIRECTS} times"))
}

/// Whether an address may be asked for at all; at which addresses it is, is looked at when its name is resolved.
fn check(url: &Url, allowed_domains: &[String]) -> Result<(), String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err("only addresses that begin with https:// or http:// can be opened".to_owned());
    }
    if url.as_str().len() > LONGEST_URL {
        return Err("its address is too long".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("its address has a user in it".to_owned());
    }
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    if allowed_domains.is_empty() || allowed_domains.iter().any(|domain| is_below(host, domain)) {
        return Ok(());
    }
    Err(format!("{host} is not among the domains that this search is limited to"))
}

fn is_below(host: &str, domain: &str) -> bool {
    let domain = domain.trim().trim_matches('.').to_ascii_lowercase();
    let below = host.strip_suffix(domain.as_str());
    !domain.is_empty() && below.is_some_and(|below| below.is_empty() || below.ends_with('.'))
}

fn request(url: &Url) -> Result<Request<Bytes>, String> {
    Request::get(url.as_str())
        .header(header::USER_AGENT, AGENT)
        .header(header::ACCEPT, ACCEPT)
        .header(header::ACCEPT_ENCODING, "gzip, zstd")
        .header(header::ACCEPT_LANGUAGE, "*")
        .body(Bytes::new())
        .map_err(|_| "its address cannot be asked for".to_owned())
}

fn leads_elsewhere(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    )
}

fn told(url: &Url, error: &OutboundError) -> String {
    format!("{}: {error}", host(url))
}

fn host(url: &Url) -> &str {
    url.host_str().unwrap_or("it")
}

/// As much of the body as is read of a page.
async fn collect(url: Url, answer: Response<OutboundBody>) -> Result<Fetched, String> {
    let (parts, mut incoming) = answer.into_parts();
    let (mut body, mut is_cut) = (Vec::new(), false);
    while let Some(frame) = incoming.frame().await {
        let Ok(data) = frame.map_err(|error| told(&url, &error))?.into_data() else { continue };
        let room = MOST_BYTES - body.len();
        body.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            is_cut = true;
            break;
        }
    }
    Ok(Fetched { url, headers: parts.headers, body, is_cut })
}

fn read(fetched: &Fetched) -> Result<Page, String> {
    let (bytes, is_cut) = inflated(fetched)?;
    let kind = kind(&fetched.headers, &bytes)?;
    if page::is_binary(&bytes) {
        return Err("it is said to be text, but it is not".to_owned());
    }
    let text = page::decoded(&bytes, parameter(content_type(&fetched.headers), "charset"));
    let page = page::read(&text, kind, &fetched.url);
    Ok(Page { is_cut: is_cut || page.is_cut, ..page })
}

/// The body as it was before it was packed, up to the limit, and whether there is more of it.
fn inflated(fetched: &Fetched) -> Result<(Vec<u8>, bool), String> {
    let mut encodings = fetched.headers.get_all(header::CONTENT_ENCODING).iter();
    let encoding = encodings.next().map_or(Ok(""), HeaderValue::to_str).unwrap_or("?").trim().to_ascii_lowercase();
    let bytes = fetched.body.as_slice();
    let unpack: Box<dyn Read + '_> = match encoding.as_str() {
        _ if encodings.next().is_some() => return Err("it is packed more than once".to_owned()),
        "" | "identity" => return Ok((bytes.to_vec(), fetched.is_cut)),
        "gzip" | "x-gzip" => Box::new(flate2::read::MultiGzDecoder::new(bytes)),
        "zstd" => {
            let mut decoder = zstd::Decoder::new(bytes).map_err(|_| "it cannot be unpacked")?;
            decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(|_| "it cannot be unpacked")?;
            Box::new(decoder)
        }
        _ => return Err("it is packed in a way that was not asked for".to_owned()),
    };
    let mut out = Vec::new();
    // One more than may be, to know whether there is more.
    let read = unpack.take(MOST_BYTES as u64 + 1).read_to_end(&mut out);
    // What was cut when it came ends in mid-stream.
    if read.is_err() && (!fetched.is_cut || out.is_empty()) {
        return Err("it cannot be unpacked".to_owned());
    }
    let is_cut = fetched.is_cut || out.len() > MOST_BYTES;
    out.truncate(MOST_BYTES);
    Ok((out, is_cut))
}

fn content_type(headers: &HeaderMap) -> &str {
    headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// What kind of text it is said to be. Where nothing is said, its first character decides.
fn kind(headers: &HeaderMap, bytes: &[u8]) -> Result<Kind, String> {
    let full = content_type(headers);
    let essence = full.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "text/html" => Ok(Kind::Html),
        "application/xhtml+xml" => Ok(Kind::Xhtml),
        "" if bytes.trim_ascii_start().starts_with(b"<") => Ok(Kind::Html),
        ""
        | "application/json"
        | "application/xml"
        | "application/javascript"
        | "application/yaml"
        | "application/x-yaml"
        | "application/toml"
        | "application/x-ndjson" => Ok(Kind::Plain),
        other if other.starts_with("text/") || other.ends_with("+json") || other.ends_with("+xml") => Ok(Kind::Plain),
        "application/pdf" => Err("it is a PDF, and only text can be opened".to_owned()),
        other => {
            let shown: String = other.chars().filter(char::is_ascii_graphic).take(80).collect();
            Err(format!("it is {shown}, and only text can be opened"))
        }
    }
}

fn parameter<'t>(content_type: &'t str, wanted: &str) -> Option<&'t str> {
    let pairs = content_type.split(';').skip(1).filter_map(|pair| pair.split_once('='));
    let mut found = pairs.filter(|(name, _)| name.trim().eq_ignore_ascii_case(wanted));
    found.next().map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests;

//! What is on the page of a case after what is given. The gist: the request as it is sent, the events by name, the
//! response without what only repeats the request. Or everything, byte for byte.

use bridge::{Events, Failure};
use providers::{Auth, HeaderSource, HeaderText, Wire};
use testkit::golden::{Case, Section, Shows, compact, pretty};
use wire::json::{ObjectWriter, Raw};
use wire::sse::Decoder;

use crate::run::{self, Ran, whole};
use crate::specs::provider;

pub(crate) fn sections(case: &Case) -> Vec<Section> {
    match case.shows {
        Shows::Gist => gist(case),
        Shows::Bytes => bytes(case),
    }
}

fn bytes(case: &Case) -> Vec<Section> {
    let ran = whole(case, Events::sse());
    let mut sections = vec![("chat".to_owned(), pretty(&run::plan(case).body))];
    sections.extend(notes(&ran.notes));
    sections.push(("stream".to_owned(), ran.out));
    sections.push(("object".to_owned(), pretty(&whole(case, Events::silent()).out)));
    sections
}

fn gist(case: &Case) -> Vec<Section> {
    let mut sections = vec![("sent".to_owned(), sent(case))];
    if let Some(failure) = run::failure(case) {
        sections.extend(notes(&run::plan(case).notes));
        sections.push(("failure".to_owned(), told(&failure)));
        return sections;
    }
    let Ran { out, notes: noted } = whole(case, Events::silent());
    sections.extend(notes(&noted));
    if run::request(case).stream == Some(true) {
        sections.push(("events".to_owned(), events(&whole(case, Events::sse()).out)));
    }
    sections.push(("response".to_owned(), response(&out)));
    sections
}

/// Address, key, what else the spec wants in headers, body.
fn sent(case: &Case) -> Vec<u8> {
    let provider = provider(&case.page.provider);
    let base = provider.base_url.as_deref().unwrap_or("{base_url}");
    let key = match provider.auth {
        Auth::Bearer => "authorization: Bearer {key}\n",
        Auth::ApiKeyHeader => "api-key: {key}\n",
        Auth::None => "",
    };
    let path = if run::spec(case).wire == Wire::Responses { "/responses" } else { &provider.path };
    let mut out = format!("POST {base}{path}\n{key}").into_bytes();
    let cache_key = run::request(case).prompt_cache_key.map(|key| key.decode().into_owned());
    for (name, text) in &provider.headers {
        let text = match text {
            HeaderText::Fixed(text) => Some(text.clone()),
            HeaderText::From(HeaderSource::CacheKey) => cache_key.clone(),
        };
        out.extend(text.map(|text| format!("{name}: {text}\n")).unwrap_or_default().into_bytes());
    }
    out.extend(compact(&run::plan(case).body));
    out
}

fn notes(notes: &[bridge::Note]) -> Option<Section> {
    let lines: Vec<String> = notes.iter().map(|note| format!("{note}: {}\n", note.message)).collect();
    (!lines.is_empty()).then(|| ("notes".to_owned(), lines.concat().into_bytes()))
}

fn told(failure: &Failure) -> Vec<u8> {
    let Failure { class, message, unsupported, .. } = failure;
    let (domain, code, kind) = (class.code(), class.response_code(), class.kind());
    let again = unsupported.map(|refusal| format!("sent again without: {}\n", refusal.unsupported.member()));
    let again = again.unwrap_or_default();
    format!("{domain}\ntype: {kind}\ncode: {code}\nmessage: {message}\n{again}").into_bytes()
}

fn events(sse: &[u8]) -> Vec<u8> {
    let mut decoder = Decoder::new(1 << 20);
    decoder.push(sse);
    let mut out = String::new();
    while let Some(event) = decoder.next_event().unwrap() {
        let Ok(data) = Raw::parse(str::from_utf8(event.data).unwrap()) else { continue };
        let name = data.get("type").and_then(Raw::text).map(|name| name.decode().into_owned()).unwrap_or_default();
        let item = data.get("item").and_then(|item| item.get("type"));
        let detail = data.get("delta").or(item).map(|detail| format!(" {}", detail.as_str()));
        out.extend([name, detail.unwrap_or_default(), "\n".to_owned()]);
    }
    out.into_bytes()
}

fn response(object: &[u8]) -> Vec<u8> {
    let object = Raw::parse(str::from_utf8(object).unwrap()).unwrap();
    let mut out = Vec::new();
    let mut gist = ObjectWriter::new(&mut out);
    for name in ["status", "error", "incomplete_details", "output", "usage"] {
        if let Some(value) = object.get(name).filter(|value| !value.is_null()) {
            gist.raw(name, value);
        }
    }
    gist.end();
    compact(&out)
}

//! Files for models that take none: what is in a PDF is read as text, once, by a process of its own, and takes the file's
//! place in the chat request. Never more of them than so many, never for longer than so long: what is not read in time is
//! left out with a note. Only what is in the request itself is read; nothing is fetched.

mod child;
mod turns;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bridge::{FileTexts, InlineFile, PdfText, PdfUnread};
use futures_util::StreamExt;
use futures_util::stream;
use memchr::memmem;
use store::Tenant;
use wire::json::{Raw, Text};
use wire::responses::{CreateResponse, Input, InputItem};

use crate::config::{FilesConfig, PdfPolicy, PdfProgram};
use crate::parts::parts;
use crate::remembered::{Memorable, Remembered, RememberedKey};
use turns::Turns;

/// Bytes of text that are remembered, over all tenants.
const ROOM: usize = 64 << 20;
/// Processes at the same time, over all requests: each may take `files.memory`.
const AT_ONCE: usize = 3;
/// Those of one tenant: the last one is for somebody else.
const OF_ONE_TENANT: usize = AT_ONCE - 1;
/// PDFs of one request that are read, from the first, with those that are known: a later turn reads no others.
const MOST: usize = 256;
/// How long a request waits for all of its files.
const PATIENCE: Duration = Duration::from_mins(1);

type Pdf = Result<PdfText, PdfUnread>;

impl Memorable for Pdf {
    fn bytes(&self) -> usize {
        self.as_ref().map_or(0, |pdf| pdf.text.len())
    }
}

/// Who reads files, and what was read.
#[derive(Debug)]
pub(crate) struct Files {
    known: Remembered<Pdf>,
    /// Whoever has a process holds one.
    turns: Arc<Turns>,
    program: Option<PdfProgram>,
}

impl Files {
    /// PDFs are read by this program, or by nobody.
    pub(crate) fn new(program: Option<PdfProgram>) -> Self {
        Self { known: Remembered::new(ROOM), turns: Turns::new(AT_ONCE, OF_ONE_TENANT), program }
    }

    /// Forgets all that is not being read.
    pub(crate) fn forget(&self) {
        self.known.forget();
    }

    /// As one tenant sees them; None: nothing is read for anybody.
    pub(crate) fn of<'f>(&'f self, tenant: &'f Tenant, config: &'f FilesConfig) -> Option<TenantFiles<'f>> {
        (config.pdf == PdfPolicy::Text).then_some(TenantFiles { all: self, tenant, config })
    }
}

/// What is known of one tenant's files.
#[derive(Debug)]
pub(crate) struct TenantFiles<'f> {
    all: &'f Files,
    tenant: &'f Tenant,
    config: &'f FilesConfig,
}

impl TenantFiles<'_> {
    /// A file as far as it is read.
    fn key(&self, data: &str) -> RememberedKey {
        let limits = format!("pdf {} {}", self.config.max_pages, self.config.max_bytes);
        RememberedKey::new([self.tenant.name(), &limits, data])
    }
}

impl FileTexts for TenantFiles<'_> {
    fn pdf(&self, data: &str) -> Pdf {
        if self.all.program.is_none() {
            return Err(PdfUnread::NotBuilt);
        }
        self.all.known.get(self.key(data)).unwrap_or(Err(PdfUnread::Unavailable))
    }

    fn room(&self) -> usize {
        self.config.max_request_bytes
    }

    fn most(&self) -> usize {
        MOST
    }
}

/// Sees to it that the PDFs of a request are read. The plan finds their text in what the server remembers.
pub(crate) async fn read(files: Option<TenantFiles<'_>>, request: &CreateResponse<'_>, past: &[InputItem<'_>]) {
    let Some(files) = files else { return };
    let all = files.all;
    let Some(program) = &all.program else { return };
    let input = match &request.input {
        Some(Input::Items(items)) => items.as_slice(),
        _ => &[],
    };
    // A type's name in quotes cannot be inside of a JSON string: its quotes would be escaped.
    let finder = memmem::Finder::new("\"input_file\"");
    let with_files = past.iter().chain(input).filter(|item| finder.find(item.raw.as_str().as_bytes()).is_some());
    let mut seen = HashSet::new();
    let pdfs = with_files.flat_map(|item| parts(item.raw)).filter_map(pdf_data).take(MOST);
    let unknown = pdfs.filter_map(|data| {
        let key = files.key(InlineFile::new("", &data.decode()).data());
        (seen.insert(key) && !all.known.is_known(key)).then_some((key, data))
    });
    let unknown: Vec<(RememberedKey, Text<'_>)> = unknown.collect();
    if unknown.is_empty() {
        return;
    }
    let reading: Vec<_> = unknown.into_iter().map(|(key, data)| one(&files, program, key, data)).collect();
    let reading = stream::iter(reading).buffered(OF_ONE_TENANT).for_each(|()| async {});
    if tokio::time::timeout(PATIENCE, reading).await.is_err() {
        tracing::info!("PDFs were not read in time");
    }
}

/// Where a part is a PDF: all of its data.
fn pdf_data(part: Raw<'_>) -> Option<Text<'_>> {
    let is_file = part.get("type").and_then(Raw::text).is_some_and(|kind| kind.is("input_file"));
    let data = part.get("file_data").filter(|_| is_file)?.text()?;
    let name = part.get("filename").and_then(Raw::text).map(Text::decode).unwrap_or_default();
    InlineFile::new(&name, &data.decode()).pdf().is_some().then_some(data)
}

/// Has one file read, unless somebody else just did.
async fn one(files: &TenantFiles<'_>, program: &PdfProgram, key: RememberedKey, data: Text<'_>) {
    let all = files.all;
    let Some(asking) = all.known.asking(key) else { return };
    let Ok(_alone) = asking.acquire().await else { return };
    if all.known.is_known(key) {
        return;
    }
    let Some(_turn) = all.turns.take(files.tenant).await else { return };
    let Some(bytes) = InlineFile::new("", &data.decode()).bytes() else {
        return all.known.put(key, Some(Err(PdfUnread::Damaged)));
    };
    let found = child::read(program, files.config, bytes).await;
    all.known.put(key, found);
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    use base64::Engine;
    #[cfg(unix)]
    use base64::engine::general_purpose::STANDARD;
    #[cfg(unix)]
    use wire::json::FromRaw;

    use super::*;

    const CONFIG: FilesConfig = FilesConfig {
        pdf: PdfPolicy::Text,
        max_pages: 1,
        max_bytes: 100,
        max_request_bytes: 100,
        timeout: Duration::from_mins(1),
        memory: 1,
    };

    /// The next turn of a conversation has the same file, under any name: it is not read again, also where it was no good.
    #[cfg(unix)]
    #[tokio::test]
    async fn the_same_bytes_are_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        for said in [r"r\0\0\0\1\0\0\0\0\1\0\0\0\2hi", r"u\3"] {
            let _ = std::fs::remove_file(&log);
            let script = format!(r"echo read >>{}; printf 'godex pdf 1\n{said}\nend\n'", log.display());
            let program = PdfProgram::new("/bin/sh", ["-c", &script, "sh"]);
            let (files, tenant) = (Files::new(Some(program)), Tenant::new("one"));
            for name in ["a.pdf", "b.pdf"] {
                let part = format!(r#"{{"type":"input_file","filename":"{name}","file_data":"JVBERi0xLjcK"}}"#);
                let body = format!(r#"{{"input":[{{"role":"user","content":[{part},{part}]}}]}}"#);
                let request = CreateResponse::from_raw(Raw::parse(&body).unwrap()).unwrap();
                read(files.of(&tenant, &CONFIG), &request, &[]).await;
            }
            let known = files.of(&tenant, &CONFIG).unwrap().pdf("JVBERi0xLjcK");
            assert_eq!(
                known.map(|pdf| pdf.text.to_string()).map_err(|why| why == PdfUnread::Limits),
                if said.starts_with('r') { Ok("[page 1]\nhi".to_owned()) } else { Err(true) }
            );
            assert_eq!(std::fs::read_to_string(&log).unwrap(), "read\n");
        }
    }

    #[cfg(unix)]
    fn asking_for(files: &[&str]) -> String {
        let part = |file: &&str| {
            let data = STANDARD.encode(format!("%PDF-1.7\n{file}"));
            format!(r#"{{"type":"input_file","filename":"a.pdf","file_data":"{data}"}}"#)
        };
        let parts: Vec<String> = files.iter().map(part).collect();
        format!(r#"{{"input":[{{"role":"user","content":[{}]}}]}}"#, parts.join(","))
    }

    /// One tenant's files take all the time that they get; another one's is read meanwhile.
    #[cfg(unix)]
    #[tokio::test]
    async fn slow_files_of_a_tenant_make_no_other_one_wait() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let good = r"printf 'godex pdf 1\nr\0\0\0\1\0\0\0\0\1\0\0\0\2hi\nend\n'";
        let slow = format!("echo >>{}; exec sleep 60", log.display());
        let script = format!(r#"case "$(cat)" in *slow*) {slow};; esac; {good}"#);
        let program = PdfProgram::new("/bin/sh", ["-c", &script, "sh"]);
        let (files, one, two) = (Files::new(Some(program)), Tenant::new("one"), Tenant::new("two"));
        let (many, few) = (asking_for(&["slow 1", "slow 2", "slow 3"]), asking_for(&["quick"]));
        let [many, few] = [&many, &few].map(|body| CreateResponse::from_raw(Raw::parse(body).unwrap()).unwrap());
        let slow = read(files.of(&one, &CONFIG), &many, &[]);
        let quick = async {
            while std::fs::read_to_string(&log).unwrap_or_default().len() < OF_ONE_TENANT {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            read(files.of(&two, &CONFIG), &few, &[]).await;
        };
        tokio::select! {
            () = slow => panic!("it is slow"),
            () = quick => {}
        }
        let known = files.of(&two, &CONFIG).unwrap().pdf(&STANDARD.encode("%PDF-1.7\nquick"));
        assert_eq!(known.map(|pdf| pdf.pages), Ok(1));
    }

    /// The last of too many are not read, in no turn.
    #[cfg(unix)]
    #[tokio::test]
    async fn a_later_turn_reads_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let script = format!(r"echo >>{}; printf 'godex pdf 1\nu\3\nend\n'", log.display());
        let program = PdfProgram::new("/bin/sh", ["-c", &script, "sh"]);
        let (files, tenant) = (Files::new(Some(program)), Tenant::new("one"));
        let names: Vec<String> = (0..MOST + 2).map(|number| number.to_string()).collect();
        let body = asking_for(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let request = CreateResponse::from_raw(Raw::parse(&body).unwrap()).unwrap();
        for turn in 1..=2 {
            read(files.of(&tenant, &CONFIG), &request, &[]).await;
            assert_eq!(std::fs::read_to_string(&log).unwrap().len(), MOST, "{turn}");
        }
    }

    #[test]
    fn a_file_is_known_to_its_tenant_only() {
        let (config, more) = (CONFIG, FilesConfig { max_pages: 2, ..CONFIG });
        let (one, two) = (Tenant::new("one"), Tenant::new("two"));
        assert_eq!(Files::new(None).of(&one, &config).unwrap().pdf("a"), Err(PdfUnread::NotBuilt));
        let files = Files::new(Some(PdfProgram::new("godex", ["read-pdf"])));
        let seen = |tenant: &Tenant, config: &FilesConfig, data: &str| files.of(tenant, config).unwrap().pdf(data);
        let text = PdfText { text: "x".into(), pages: 1, of: 1, cut: false };
        files.known.put(files.of(&one, &config).unwrap().key("a"), Some(Ok(text.clone())));
        assert_eq!(seen(&one, &config, "a"), Ok(text));
        for (tenant, config, data) in [(&two, &config, "a"), (&one, &more, "a"), (&one, &config, "b")] {
            assert_eq!(seen(tenant, config, data), Err(PdfUnread::Unavailable));
        }
        assert!(files.of(&one, &FilesConfig { pdf: PdfPolicy::Off, ..config }).is_none());
        files.forget();
        assert_eq!(seen(&one, &config, "a"), Err(PdfUnread::Unavailable));
    }
}

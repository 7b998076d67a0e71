//! The addresses that a conversation has shown to its model: those that its people and tools have written. A model opens
//! no other ones, or whoever writes a page could have it carry off what the conversation says. What they are taken from
//! is not kept.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::digest;
use store::Tenant;
use url::Url;

/// The most addresses of one conversation.
const MOST: usize = 20_000;
/// A longer one is none that somebody wrote.
const LONGEST: usize = 2048;
/// The most conversations that are remembered beyond one request; of the tenant with most of them the oldest goes first.
const MOST_SESSIONS: usize = 256;

/// Addresses, as far as they lead to different pages.
#[derive(Debug, Default)]
pub(crate) struct Shown(HashSet<String>);

impl Shown {
    /// Takes the addresses out of a text.
    pub(crate) fn read(&mut self, text: &str) {
        for word in text.split(|c: char| c.is_whitespace() || c.is_control() || "<>\"`|\\^{}".contains(c)) {
            if !word.contains('.') {
                continue;
            }
            // `[title](address)`, `address](address`: all that may begin one, to the end that it would have alone.
            let starts = word.match_indices("http").map(|(at, _)| at);
            let written = starts.filter(|at| {
                let rest = &word[*at..];
                rest.starts_with("http://") || rest.starts_with("https://")
            });
            let mut found = false;
            for at in written.take(8) {
                found = true;
                self.add_written(&word[at..]);
            }
            if !found && word.len() <= LONGEST {
                self.add_bare(word);
            }
        }
    }

    /// An address in a text may be followed by what belongs to the sentence.
    fn add_written(&mut self, word: &str) {
        let word = &word[..word.floor_char_boundary(LONGEST)];
        let end = word.find("](").unwrap_or(word.len());
        let word = &word[..end];
        self.add(word);
        let mut trimmed = word;
        while let Some(last) = trimmed.chars().next_back().filter(|last| ")].,;:!?'*_…。，”’".contains(*last)) {
            // A bracket that was opened in the address belongs to it.
            if last == ')' && trimmed.matches(')').count() <= trimmed.matches('(').count() {
                break;
            }
            trimmed = &trimmed[..trimmed.len() - last.len_utf8()];
        }
        if trimmed.len() < word.len() {
            self.add(trimmed);
        }
        if let Some(at) = word.find([')', ']', '\'']) {
            self.add(&word[..at]);
        }
    }

    /// `example.com/path`, as people write it.
    fn add_bare(&mut self, word: &str) {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '/');
        let host = word.split(['/', '?', '#', ':']).next().unwrap_or_default();
        let is_label =
            |label: &str| !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let top = host.rsplit('.').next().unwrap_or_default();
        let is_host = host.contains('.') && host.split('.').all(is_label) && top.len() >= 2;
        if is_host && top.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            self.add(&format!("https://{word}"));
        }
    }

    /// One address.
    pub(crate) fn add(&mut self, url: &str) {
        if self.0.len() < MOST && url.len() <= LONGEST {
            self.0.extend(page(url));
        }
    }

    /// Whether the conversation has shown it.
    pub(crate) fn has(&self, url: &str) -> bool {
        page(url).is_some_and(|page| self.0.contains(&page))
    }
}

/// What two addresses of one page have in common: all but the scheme, the fragment, marks of campaigns, and a slash at the
/// end.
pub(crate) fn page(url: &str) -> Option<String> {
    let mut url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    url.set_fragment(None);
    if url.query().is_some() {
        let kept: Vec<_> = url.query_pairs().filter(|(name, _)| !name.starts_with("utm_")).collect();
        let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(kept).finish();
        url.set_query((!query.is_empty()).then_some(&query));
    }
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let path = url.path().trim_end_matches('/');
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    Some(format!("{}{port}{path}{query}", url.host_str()?))
}

/// Sessions by their keys, the latest first.
type ByKey = VecDeque<Session>;

#[derive(Debug)]
struct Session {
    tenant: Tenant,
    key: [u8; 32],
    shown: Arc<Mutex<Shown>>,
}

/// What sessions have shown whose clients search by themselves, request by request. Forgotten with the process.
#[derive(Debug, Default)]
pub(crate) struct ShownInSessions(Mutex<ByKey>);

impl ShownInSessions {
    /// What this session of this tenant has shown so far.
    pub(crate) fn of(&self, tenant: &Tenant, session: &str) -> Arc<Mutex<Shown>> {
        // However long it is.
        let hash = digest::digest(&digest::SHA256, session.as_bytes());
        let key: [u8; 32] = hash.as_ref().first_chunk().copied().unwrap_or_default();
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |known: &Session| known.key == key && known.tenant == *tenant;
        let found = sessions.iter().position(is_it).and_then(|at| sessions.remove(at));
        let session = found.unwrap_or_else(|| Session { tenant: tenant.clone(), key, shown: Arc::default() });
        let shown = Arc::clone(&session.shown);
        sessions.push_front(session);
        if sessions.len() > MOST_SESSIONS {
            make_room(&mut sessions);
        }
        shown
    }

    /// Forgets the sessions of a tenant.
    pub(crate) fn forget(&self, tenant: &Tenant) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|session| session.tenant != *tenant);
    }
}

/// Forgets the oldest session of the tenant that has most: a flood of them costs whoever sends it.
fn make_room(sessions: &mut ByKey) {
    let mut counts: HashMap<&Tenant, usize> = HashMap::new();
    for session in sessions.iter() {
        *counts.entry(&session.tenant).or_default() += 1;
    }
    let most = counts.values().max().copied().unwrap_or_default();
    let oldest = sessions.iter().rposition(|session| counts.get(&session.tenant) == Some(&most));
    oldest.and_then(|at| sessions.remove(at));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_as_people_write_them() {
        let text = "See https://a.org/x, (https://b.org/y) and [B](https://c.org/z?q=1&utm_source=n#top).\nAlso d.org/p, \
                    http://e.org:8080/ “https://f.org/f”; {\"url\":\"https://g.org/g\"} v1.2 e.g. foo.rs \
                    ([h](https://h.org/a_(b))). https://i.org";
        let mut shown = Shown::default();
        shown.read(text);
        for (url, expected) in [
            ("https://a.org/x", true),
            ("http://a.org/x/", true),
            ("https://a.org/x#part", true),
            ("https://a.org/x?data=secret", false),
            ("https://a.org/", false),
            ("https://b.org/y", true),
            ("https://c.org/z?q=1", true),
            ("https://c.org/z?q=1&utm_medium=x", true),
            ("https://c.org/z?q=2", false),
            ("https://d.org/p", true),
            ("http://e.org:8080", true),
            ("http://e.org", false),
            ("https://f.org/f", true),
            ("https://g.org/g", true),
            ("https://h.org/a_(b)", true),
            ("https://i.org/", true),
            ("https://v1.2/", false),
            ("ftp://a.org/x", false),
            ("https://evil.org/", false),
            ("", false),
        ] {
            assert_eq!(shown.has(url), expected, "{url}");
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut shown = Shown::default();
        for number in 0..MOST + 100 {
            shown.read(&format!("https://a.org/{number} "));
        }
        assert_eq!(shown.0.len(), MOST);
        for hostile in
            ["http://a.".repeat(200_000), "a.".repeat(400_000), "https://[.".repeat(100_000), "a.b ".repeat(200_000)]
        {
            Shown::default().read(&hostile);
        }
    }

    #[test]
    fn sessions_are_apart_and_the_oldest_goes_first() {
        let (one, two) = (Tenant::new("one"), Tenant::new("two"));
        let sessions = ShownInSessions::default();
        let has = |tenant: &Tenant, session: &str| sessions.of(tenant, session).lock().unwrap().has("https://a.org/");
        sessions.of(&one, "s").lock().unwrap().add("https://a.org/");
        sessions.of(&two, "t").lock().unwrap().add("https://a.org/");
        assert!(has(&one, "s") && !has(&two, "s") && !has(&one, "t") && !has(&Tenant::new("on"), "es"));
        for number in 0..MOST_SESSIONS {
            let _ = sessions.of(&one, &number.to_string());
        }
        assert!(!has(&one, "s"));
        assert!(has(&two, "t"), "a flood costs whoever sends it");
        assert_eq!(sessions.0.lock().unwrap().len(), MOST_SESSIONS);
    }
}

//! The request that asks a service.

use std::fmt;

use url::Url;

use super::spec::{Auth, Domains, SearchSpec};
use super::template;

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    pub query: &'a str,
    /// How many results.
    pub count: usize,
    pub size: ContextSize,
    /// Two letters.
    pub country: Option<&'a str>,
    /// Two letters, or more.
    pub language: Option<&'a str>,
    /// The only hosts that are wanted, with those below them; all, if there are none.
    pub domains: &'a [String],
}

/// `search_context_size`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ContextSize {
    Low,
    #[default]
    Medium,
    High,
}

/// A request, ready to be sent. Its address and headers may hold the key.
pub struct SearchRequest {
    pub posts: bool,
    pub url: String,
    pub headers: Vec<(String, String)>,
    /// JSON; empty for a GET.
    pub body: Vec<u8>,
}

impl fmt::Debug for SearchRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchRequest").field("posts", &self.posts).finish_non_exhaustive()
    }
}

impl SearchSpec {
    /// The request to the service at this address; none if that is no address.
    pub fn request(&self, base_url: &str, key: Option<&str>, ask: &Ask<'_>) -> Option<SearchRequest> {
        let domains = &ask.domains[..ask.domains.len().min(self.domains.most())];
        let sites = match self.domains {
            Domains::SiteOperator => site_operator(ask.query, domains),
            Domains::None | Domains::Field { .. } => None,
        };
        let query = sites.as_deref().unwrap_or(ask.query);
        let ask = &Ask { query, domains, count: ask.count.min(self.most), ..*ask };
        let field = match &self.domains {
            Domains::Field { name, .. } => Some(name.as_str()),
            Domains::None | Domains::SiteOperator => None,
        };
        let mut url = Url::parse(&format!("{}{}", base_url.trim_end_matches('/'), self.path)).ok()?;
        let in_body = self.body.as_deref().filter(|_| self.posts);
        let mut pairs: Vec<(&str, String)> = Vec::new();
        for (name, value) in &self.query {
            pairs.extend(template::text(value, ask).map(|value| (name.as_str(), value)));
        }
        if in_body.is_none() {
            pairs.extend(field.and_then(|name| Some((name, template::text("$domains", ask)?))));
        }
        let mut headers = self.headers.clone();
        match (&self.auth, key) {
            (Auth::Header { name, prefix }, Some(key)) => headers.push((name.clone(), format!("{prefix}{key}"))),
            (Auth::Query { name }, Some(key)) => pairs.push((name, key.to_owned())),
            (Auth::None, _) | (_, None) => {}
        }
        if !pairs.is_empty() {
            url.query_pairs_mut().extend_pairs(pairs);
        }
        let body = in_body.map(|body| template::body(body, field, ask)).unwrap_or_default();
        Some(SearchRequest { posts: self.posts, url: url.into(), headers, body })
    }
}

/// The query with the sites that it is about.
fn site_operator(query: &str, domains: &[String]) -> Option<String> {
    let sites: Vec<_> = domains.iter().map(|domain| format!("site:{domain}")).collect();
    match sites.as_slice() {
        [] => None,
        [one] => Some(format!("{query} {one}")),
        several => Some(format!("{query} ({})", several.join(" OR "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "the-key";

    fn asked(name: &str, ask: &Ask<'_>) -> String {
        let spec = SearchSpec::named(name, &|_| None).unwrap().unwrap();
        let base = spec.base_url.clone().unwrap_or_else(|| "http://searx.local/sub/".to_owned());
        let key = spec.wants_key().then_some(KEY);
        let request = spec.request(&base, key, ask).unwrap();
        assert!(!format!("{request:?}{spec:?}").contains(KEY));
        let headers: Vec<_> = request.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let method = if request.posts { "POST" } else { "GET" };
        let body = String::from_utf8(request.body).unwrap();
        format!("{method} {} [{}] {body}", request.url, headers.join(", "))
    }

    #[test]
    fn each_service_is_asked_in_its_own_words() {
        let domains = ["a.org".to_owned(), "b.org".to_owned()];
        let whole = Ask {
            query: "rust \"2026\" & é",
            count: 30,
            size: ContextSize::High,
            country: Some("de"),
            language: Some("fr"),
            domains: &domains,
        };
        let plain = Ask { query: "q", count: 3, size: ContextSize::Low, country: None, language: None, domains: &[] };
        let sites = "rust+%222026%22+%26+%C3%A9+%28site%3Aa.org+OR+site%3Ab.org%29";
        let json = r#"rust \"2026\" & é"#;
        for (name, plainly, wholly) in [
            (
                "searxng",
                "GET http://searx.local/sub/search?q=q&format=json [] ".to_owned(),
                format!("GET http://searx.local/sub/search?q={sites}&format=json&language=fr [] "),
            ),
            (
                "brave",
                "GET https://api.search.brave.com/res/v1/web/search?q=q&count=3 [Accept: application/json, X-Subscription-Token: the-key] ".to_owned(),
                format!("GET https://api.search.brave.com/res/v1/web/search?q={sites}&count=20&country=DE&search_lang=fr [Accept: application/json, X-Subscription-Token: the-key] "),
            ),
            (
                "tavily",
                r#"POST https://api.tavily.com/search [Authorization: Bearer the-key] {"query":"q","max_results":3,"search_depth":"basic"}"#.to_owned(),
                format!(r#"POST https://api.tavily.com/search [Authorization: Bearer the-key] {{"query":"{json}","max_results":20,"search_depth":"advanced","include_domains":["a.org","b.org"]}}"#),
            ),
            (
                "exa",
                r#"POST https://api.exa.ai/search [x-api-key: the-key] {"query":"q","numResults":3,"contents":{"text":{"maxCharacters":1200}}}"#.to_owned(),
                format!(r#"POST https://api.exa.ai/search [x-api-key: the-key] {{"query":"{json}","numResults":20,"userLocation":"DE","contents":{{"text":{{"maxCharacters":3000}}}},"includeDomains":["a.org","b.org"]}}"#),
            ),
            (
                "serper",
                r#"POST https://google.serper.dev/search [X-API-KEY: the-key] {"q":"q","num":3}"#.to_owned(),
                format!(r#"POST https://google.serper.dev/search [X-API-KEY: the-key] {{"q":"{json} (site:a.org OR site:b.org)","num":20,"gl":"de","hl":"fr"}}"#),
            ),
            (
                "perplexity",
                r#"POST https://api.perplexity.ai/search [Authorization: Bearer the-key] {"query":"q","max_results":3,"max_tokens_per_page":256}"#.to_owned(),
                format!(r#"POST https://api.perplexity.ai/search [Authorization: Bearer the-key] {{"query":"{json}","max_results":20,"max_tokens_per_page":1024,"country":"DE","search_domain_filter":["a.org","b.org"]}}"#),
            ),
            (
                "firecrawl",
                r#"POST https://api.firecrawl.dev/v2/search [Authorization: Bearer the-key] {"query":"q","limit":3}"#.to_owned(),
                format!(r#"POST https://api.firecrawl.dev/v2/search [Authorization: Bearer the-key] {{"query":"{json} (site:a.org OR site:b.org)","limit":30,"country":"DE"}}"#),
            ),
            (
                "jina",
                "GET https://s.jina.ai/?q=q&num=3 [Accept: application/json, X-Respond-With: no-content, Authorization: Bearer the-key] ".to_owned(),
                format!("GET https://s.jina.ai/?q={sites}&num=20&gl=DE&hl=fr [Accept: application/json, X-Respond-With: no-content, Authorization: Bearer the-key] "),
            ),
            (
                "zhipu",
                r#"POST https://open.bigmodel.cn/api/paas/v4/web_search [Authorization: Bearer the-key] {"search_query":"q","search_engine":"search_std","search_intent":false,"count":3,"content_size":"medium"}"#.to_owned(),
                format!(r#"POST https://open.bigmodel.cn/api/paas/v4/web_search [Authorization: Bearer the-key] {{"search_query":"{json}","search_engine":"search_std","search_intent":false,"count":30,"content_size":"high","search_domain_filter":"a.org"}}"#),
            ),
        ] {
            assert_eq!(asked(name, &plain), plainly);
            assert_eq!(asked(name, &whole), wholly);
        }
    }

    #[test]
    fn a_key_may_be_in_the_query_and_domains_in_a_list() {
        let text = "extends: brave\nauth: {query: key}\ndomains: {field: only, most: 1}";
        let document = providers::yaml::Document::parse("mine.yaml", text).unwrap();
        let reader = providers::yaml::Reader::new(&document, &|_| None);
        let spec = SearchSpec::inline("mine.yaml", &reader.root_field(), &|_| None).unwrap();
        let domains = ["a.org".to_owned(), "b.org".to_owned()];
        let size = ContextSize::Medium;
        let ask = Ask { query: "q", count: 5, size, country: None, language: None, domains: &domains };
        let url = spec.request("https://s.test", Some("k&y"), &ask).unwrap().url;
        assert_eq!(url, "https://s.test/web/search?q=q&count=5&only=a.org&key=k%26y");
        assert!(spec.request("no address", None, &ask).is_none());
    }
}

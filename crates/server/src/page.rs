//! The page of the operator: files that are in the binary, as they are in `page/`. No build makes them, and nothing in them is
//! from elsewhere. They hold no data: all of that the page asks the admin listener for, and shows it as text.

use std::sync::LazyLock;

use aws_lc_rs::digest::{Context, SHA256};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use crate::body::Body;

/// What the page may load and where it may send: only from and to where it is from.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// One file: its path, its type, what is in it.
type File = (&'static str, &'static str, &'static str);

const FILES: &[File] = &[
    ("/", HTML, include_str!("page/index.html")),
    ("/page/style.css", "text/css; charset=utf-8", include_str!("page/style.css")),
    ("/page/icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
    ("/page/app.js", SCRIPT, include_str!("page/app.js")),
    ("/page/api.js", SCRIPT, include_str!("page/api.js")),
    ("/page/dom.js", SCRIPT, include_str!("page/dom.js")),
    ("/page/format.js", SCRIPT, include_str!("page/format.js")),
    ("/page/charts.js", SCRIPT, include_str!("page/charts.js")),
    ("/page/turns.js", SCRIPT, include_str!("page/turns.js")),
    ("/page/turn.js", SCRIPT, include_str!("page/turn.js")),
    ("/page/compare.js", SCRIPT, include_str!("page/compare.js")),
    ("/page/tree.js", SCRIPT, include_str!("page/tree.js")),
    ("/page/providers.js", SCRIPT, include_str!("page/providers.js")),
    ("/page/keys.js", SCRIPT, include_str!("page/keys.js")),
    ("/page/playground.js", SCRIPT, include_str!("page/playground.js")),
];

/// Of all files together: they fit each other only in one version.
static TAG: LazyLock<HeaderValue> = LazyLock::new(|| {
    let mut hash = Context::new(&SHA256);
    for (path, _, text) in FILES {
        hash.update(path.as_bytes());
        hash.update(text.as_bytes());
    }
    let hex: String = hash.finish().as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::try_from(format!("\"{hex}\"")).unwrap_or_else(|_| HeaderValue::from_static("\"0\""))
});

/// Whether this is the path of a file.
pub(crate) fn has(path: &str) -> bool {
    FILES.iter().any(|(known, ..)| *known == path)
}

/// The file of this path; None: there is none.
pub(crate) fn file(path: &str) -> Option<Response<Body>> {
    let (_, kind, text) = FILES.iter().find(|(known, ..)| *known == path)?;
    let mut response = Response::new(Body::full(Bytes::from_static(text.as_bytes())));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::ETAG, TAG.clone());
    Some(response)
}

/// An answer that the browser has already, by its tag, is not sent again.
pub(crate) fn unless_known(asked: &HeaderMap, response: Response<Body>) -> Response<Body> {
    let known =
        asked.get(header::IF_NONE_MATCH).is_some_and(|known| response.headers().get(header::ETAG) == Some(known));
    if !known {
        return response;
    }
    let (mut head, _) = response.into_parts();
    head.status = StatusCode::NOT_MODIFIED;
    Response::from_parts(head, Body::full(Bytes::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the files refer to is there, from the same place, and nothing of others' is ever read as HTML.
    #[test]
    fn the_files_refer_to_each_other_alone() {
        let quoted = |text: &str, mark: &str| -> Vec<String> {
            let parts = text.split(mark).skip(1);
            parts.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
        };
        for (path, _, text) in FILES {
            for (mark, base) in [("src=\"", "/"), ("href=\"", "/"), ("from \"./", "/page/"), ("import(\"./", "/page/")]
            {
                for name in quoted(text, mark).into_iter().filter(|name| !name.starts_with('#')) {
                    assert!(has(&format!("{base}{name}")), "{path}: {mark}{name}");
                }
            }
            for never in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "DOMParser",
                "eval(",
                "new Function",
                "javascript:",
                "https://",
                " style=\"",
                " onclick=",
                "srcdoc",
            ] {
                assert!(!text.contains(never), "{path} has {never}");
            }
        }
    }
}

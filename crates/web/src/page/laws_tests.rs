//! Any bytes are a page.

use proptest::prelude::*;
use url::Url;

use super::clean::is_hidden;
use super::passages::MOST_AT_ONCE;
use super::{Kind, addresses, decoded, find, is_binary, normalised, part, read};

/// Pieces of pages, whole and broken.
fn piece() -> impl Strategy<Value = String> {
    let tag =
        "</?(a|b|p|h1|div|ul|ol|li|pre|code|table|tr|td|th|blockquote|nav|svg|title|script|style|base|img|br|xmp)";
    let attribute = "( (href|alt|hidden|style|start|a)( ?= ?(\"[a-z:/.#?)(]{0,9}\"|'[^']{0,5}|[a-z:/.]{0,9})?)?)?";
    let odd = [
        "<",
        ">",
        "</",
        "<!--",
        "-->",
        "\"",
        "'",
        "=",
        "\n",
        "\r\n",
        "\u{202e}",
        "\u{e0041}",
        "```",
        "&#xe0041;",
        "&#13;",
    ];
    prop_oneof![
        2 => "[a-z ]{0,8}",
        2 => "\\PC{0,6}",
        8 => (tag, attribute, "/?>?").prop_map(|(tag, attribute, end)| tag + &attribute + &end),
        1 => "&(amp|lt|#[0-9]{0,9}|#x[0-9a-f]{0,8}|[a-z]{1,9});?",
        2 => proptest::sample::select(odd.to_vec()).prop_map(str::to_owned),
    ]
}

fn page() -> impl Strategy<Value = String> {
    proptest::collection::vec(piece(), 0..60).prop_map(|pieces| pieces.concat())
}

fn url() -> Url {
    Url::parse("https://a.example/b/c?d").unwrap()
}

proptest! {
    /// Nothing hidden is in a text, links lead to the web, and both are no longer than they may be.
    #[test]
    fn any_html_is_text(html in page(), xml: bool) {
        let kind = if xml { Kind::Xhtml } else { Kind::Html };
        let page = read(&html, kind, &url());
        prop_assert!(!page.text.contains(is_hidden) && !page.title.contains(is_hidden), "{page:?}");
        prop_assert!(page.links.iter().all(|link| normalised(link).is_some()), "{page:?}");
        prop_assert!(page.text.len() <= html.len() * 30, "{page:?}");
        prop_assert!(part(&page, html.len() / 2).len() <= MOST_AT_ONCE);
        prop_assert!(find(&page, html.get(..4).unwrap_or("a")).len() <= MOST_AT_ONCE);
    }

    #[test]
    fn any_bytes_are_text(bytes in proptest::collection::vec(any::<u8>(), 0..400), charset in "(utf-8|utf-16be|latin1|x)?") {
        is_binary(&bytes);
        let named = Some(charset.as_str()).filter(|name| !name.is_empty());
        let text = decoded(&bytes, named);
        for kind in [Kind::Html, Kind::Plain] {
            let page = read(&text, kind, &url());
            prop_assert!(!page.text.contains(is_hidden), "{page:?}");
        }
    }

    /// An address is found again behind whatever stands before it.
    #[test]
    fn addresses_are_found_in_anything(before in "\\PC{0,20}", path in "[a-z0-9/?=&%-]{0,20}[a-z0-9]") {
        let address = format!("https://a.example/{path}");
        let escaped = address.replace('/', "\\/");
        for written in [&address, &escaped] {
            let text = format!("{before} {written} and more");
            prop_assert!(addresses(&text).any(|found| found == address), "{text}");
        }
    }
}

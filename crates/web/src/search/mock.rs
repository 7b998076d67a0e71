//! The search that asks nobody.

use super::answer::Found;
use super::request::Ask;

/// The same for the same query.
pub fn mocked(ask: &Ask<'_>) -> Vec<Found> {
    let slug: String =
        ask.query.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let slug: Vec<_> = slug.split('-').filter(|part| !part.is_empty()).take(8).collect();
    let host = ask.domains.first().map_or("example.com", String::as_str);
    vec![Found {
        title: format!("Mock result for {}", super::clean(ask.query)),
        url: format!("https://{host}/search/{}", slug.join("-")),
        text: format!("This result was made up for the query \"{}\"; nothing was searched.", super::clean(ask.query)),
        date: Some("2026-01-01".to_owned()),
    }]
}

//! `oidc`: an identity provider whose tokens are taken beside API keys.

use std::time::Duration;

use providers::yaml::{Field, Section};

use super::units::{self, Bare};
use super::{address, keys, print};
use crate::terms::Terms;

/// Whose tokens are taken, and what they say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OidcConfig {
    /// As tokens have it in `iss`.
    pub issuer: String,
    /// Who a token must be for.
    pub audience: String,
    /// Where its keys are; None: where the issuer says.
    pub jwks_uri: Option<String>,
    /// What says whose tenant it is.
    pub tenant_claim: String,
    /// What lists the models that may be used.
    pub models_claim: Option<String>,
    /// What holds terms, as JSON.
    pub terms_claim: Option<String>,
    /// For all tokens; what a token says counts before it.
    pub terms: Terms,
    /// How long its keys are used while the issuer cannot be reached.
    pub jwks_grace: Duration,
}

const GRACE: Duration = Duration::from_hours(1);
/// Longer than they are used without asking.
const SHORTEST_GRACE: Duration = Duration::from_mins(10);

pub(super) fn read(field: &Field<'_>) -> Option<OidcConfig> {
    let mut section = field.clone().section()?;
    let issuer = needed(&mut section, "issuer", url);
    let audience = needed(&mut section, "audience", Field::text);
    let tenant_claim = needed(&mut section, "tenant_claim", Field::text);
    let jwks_uri = section.read("jwks_uri", url);
    let [models_claim, terms_claim] = ["models_claim", "terms_claim"].map(|name| section.read(name, Field::text));
    let terms = section.field("terms").and_then(Field::section).map(|mut section| {
        let terms = keys::terms(&mut section);
        section.finish();
        terms
    });
    let grace =
        |field: &Field<'_>| units::duration(field, Bare::Refused, &(SHORTEST_GRACE..=Duration::from_hours(24 * 7)));
    let jwks_grace = section.read("jwks_grace", grace).unwrap_or(GRACE);
    section.finish();
    Some(OidcConfig {
        issuer: issuer?,
        audience: audience?,
        jwks_uri,
        tenant_claim: tenant_claim?,
        models_claim,
        terms_claim,
        terms: terms.unwrap_or_default(),
        jwks_grace,
    })
}

fn needed<'r>(
    section: &mut Section<'r>,
    name: &'static str,
    read: impl FnOnce(&Field<'r>) -> Option<String>,
) -> Option<String> {
    match section.field(name) {
        Some(field) => read(&field),
        None => {
            section.problem(format!("needs `{name}`"), None);
            None
        }
    }
}

/// As it is written: tokens have it byte for byte.
fn url(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    address::base_url(&text, false).map_err(|message| field.problem(message, None)).ok()?;
    Some(text)
}

pub(super) fn print(oidc: &OidcConfig) -> String {
    let mut lines = vec![
        ("issuer", print::quote(&oidc.issuer)),
        ("audience", print::quote(&oidc.audience)),
        ("tenant_claim", print::quote(&oidc.tenant_claim)),
    ];
    let named =
        [("jwks_uri", &oidc.jwks_uri), ("models_claim", &oidc.models_claim), ("terms_claim", &oidc.terms_claim)];
    lines.extend(named.into_iter().filter_map(|(name, value)| Some((name, print::quote(value.as_ref()?)))));
    if oidc.terms != Terms::default() {
        // JSON is YAML.
        lines.push(("terms", oidc.terms.to_json()));
    }
    lines.push(("jwks_grace", units::print_duration(oidc.jwks_grace)));
    lines.into_iter().fold(String::new(), |all, (name, value)| all + "\n" + name + ": " + &value)
}

#[cfg(test)]
mod tests {
    use providers::yaml::{Document, Reader};

    use super::*;

    fn read_text(text: &str) -> (Option<OidcConfig>, Vec<String>) {
        let document = Document::parse("godex.yaml", text).unwrap();
        let env = |_: &str| None;
        let reader = Reader::new(&document, &env);
        let mut root = reader.root();
        let oidc = root.field("oidc").and_then(|field| read(&field));
        root.finish();
        (oidc, reader.finish().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn an_issuer_is_read_and_printed() {
        for text in [
            "{issuer: 'https://id.example.com', audience: godex, tenant_claim: team}",
            "{issuer: 'http://127.0.0.1:9/realm/', audience: godex, tenant_claim: 'https://a.example/team', jwks_uri: \
             'https://id.example.com/keys', models_claim: models, terms_claim: godex, jwks_grace: 2h, terms: {rpm: 60, \
             models: [fast], budget: 1usd/day}}",
        ] {
            let (oidc, problems) = read_text(&format!("oidc: {text}\n"));
            assert_eq!(problems, Vec::<String>::new());
            let printed = print(oidc.as_ref().unwrap()).replace('\n', "\n  ");
            assert_eq!(read_text(&format!("oidc:{printed}\n")), (oidc, Vec::new()), "{printed}");
        }
    }

    #[test]
    fn mistakes_are_told() {
        for (entry, expected) in [
            ("{audience: a, tenant_claim: t}", "oidc: needs `issuer`"),
            ("{issuer: 'https://a.example', tenant_claim: t}", "oidc: needs `audience`"),
            ("{issuer: 'https://a.example', audience: a}", "oidc: needs `tenant_claim`"),
            ("{issuer: 'http://a.example', audience: a, tenant_claim: t}", "oidc.issuer: plain http"),
            ("{issuer: a, audience: a, tenant_claim: t}", "oidc.issuer: must be a URL"),
            ("{issuer: 'https://a.example', audience: a, tenant_claim: t, alg: none}", "oidc: unknown key `alg`"),
        ] {
            let (_, problems) = read_text(&format!("oidc: {entry}\n"));
            assert!(problems.len() == 1 && problems[0].contains(expected), "{entry}: {problems:?}");
        }
    }
}

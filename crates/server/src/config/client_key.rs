//! The key with which clients ask this godex, and where they look for it.

use providers::yaml::Env;

/// Where OpenAI's clients look for their key.
const CLIENT_VARIABLE: &str = "OPENAI_API_KEY";
/// Where the user's key of a godex is.
pub const OWN_VARIABLE: &str = "GODEX_API_KEY";
/// What clients are given where no key is wanted: most insist on one.
pub const UNWANTED: &str = "unused";
/// What every key that is made here begins with.
pub(crate) const KEY_PREFIX: &str = "gdx_";

/// The key that a variable has for a provider that nobody configured. What `godex env` has put where OpenAI's clients look is
/// none: everything that no other provider serves would go to OpenAI, with a key of this godex.
pub fn for_provider(env: Env<'_>, variable: &str) -> Option<String> {
    let key = env(variable)?.trim().to_owned();
    let is_own =
        || key == UNWANTED || key.starts_with(KEY_PREFIX) || env(OWN_VARIABLE).is_some_and(|own| own.trim() == key);
    let is_none = key.is_empty() || variable == CLIENT_VARIABLE && is_own();
    (!is_none).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_are_given_is_no_providers_key() {
        let env = |name: &str| match name {
            CLIENT_VARIABLE => Some("  of-a-file\n"),
            OWN_VARIABLE => Some("mine"),
            "EMPTY" => Some(" "),
            "OTHER" => Some(UNWANTED),
            _ => None,
        };
        let found = |client: Option<&'static str>, variable: &str| {
            let env = |name: &str| match client {
                Some(client) if name == CLIENT_VARIABLE => Some(client.to_owned()),
                _ => env(name).map(str::to_owned),
            };
            for_provider(&env, variable)
        };
        for own in [UNWANTED, "mine", " mine ", "gdx_anything"] {
            assert_eq!(found(Some(own), CLIENT_VARIABLE), None, "{own}");
        }
        assert_eq!(found(None, CLIENT_VARIABLE).as_deref(), Some("of-a-file"));
        assert_eq!(found(None, "OTHER").as_deref(), Some(UNWANTED));
        assert_eq!((found(None, "EMPTY"), found(None, "NOT_THERE")), (None, None));
    }
}

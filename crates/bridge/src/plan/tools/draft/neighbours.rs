//! Keywords that mean something else beside others, or forbid more where others say less.

use wire::json::{Kind, Raw};

use super::fate::{Fate, Loss};
use super::members::Members;

/// How that draft is named.
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Settles what becomes of the keywords of one schema, once it is known of each alone.
pub(super) fn settle(members: &mut Members<'_>) {
    tuple(members);
    excluded(members, "exclusiveMinimum", "minimum");
    excluded(members, "exclusiveMaximum", "maximum");
    condition(members);
    contained(members);
    alternatives(members);
    rest(members);
    // It is of that draft now, whatever it was.
    let is_of_it = |draft: Raw<'_>| draft.text().is_some_and(|draft| draft.is(DRAFT));
    if !members.are_as_they_were() && !members.value("$schema").is_some_and(is_of_it) {
        members.set("$schema", Fate::Goes(Loss::Nothing));
    }
}

/// A list under `items`: one schema for each place, and one for what comes after them.
fn tuple(members: &mut Members<'_>) {
    let Some(places) = members.value("items").filter(|items| items.kind() == Kind::Array) else {
        // Nobody knows it.
        return members.set("additionalItems", Fate::Stays);
    };
    let has_places = |list: Raw<'_>| list.elements().next().is_some();
    if members.value("prefixItems").is_some_and(has_places) {
        // Both say what the first places are: the newer one counts, and how many the other had is not known any more.
        members.set("items", Fate::Goes(Loss::Places));
        return members.set("additionalItems", Fate::Goes(Loss::Places));
    }
    if has_places(places) {
        members.rename("items", "prefixItems");
    } else {
        members.set("items", Fate::Goes(Loss::Nothing));
    }
    members.rename("additionalItems", "items");
}

/// In the older way it is said whether the limit itself is excluded.
fn excluded(members: &mut Members<'_>, key: &str, limit: &str) {
    let Some(is_excluded) = members.value(key).filter(|value| value.kind() == Kind::Bool) else { return };
    let number = members.value(limit).filter(|limit| limit.kind() == Kind::Number && is_excluded.as_str() == "true");
    match number {
        // The limit that is excluded stands there.
        Some(number) => {
            members.set(key, Fate::Becomes(number.as_str().to_owned().into(), Loss::Nothing));
            members.set(limit, Fate::Goes(Loss::Nothing));
        }
        None => members.set(key, Fate::Goes(Loss::Nothing)),
    }
}

/// A condition that allows more demands what is under `then` more often, and what is under `else` less often.
fn condition(members: &mut Members<'_>) {
    if members.loss("if") > Loss::Nothing {
        for name in ["if", "then", "else"] {
            members.set(name, Fate::Goes(Loss::Places));
        }
    }
}

/// Of elements that are looked for more are found, or another number of them is demanded.
fn contained(members: &mut Members<'_>) {
    if members.loss("minContains") > Loss::Nothing {
        members.set("contains", Fate::Goes(Loss::Places));
    }
    if members.loss("contains") > Loss::Nothing {
        members.set("maxContains", Fate::Goes(Loss::Limits));
    }
}

/// Where one of several allows more, more than one may fit.
fn alternatives(members: &mut Members<'_>) {
    if members.loss("oneOf") == Loss::Nothing || !members.has("oneOf") {
        return;
    }
    if members.has("anyOf") {
        members.set("oneOf", Fate::Goes(Loss::Places));
    } else {
        members.rename("oneOf", "anyOf");
    }
}

/// What is said of all properties and elements that nothing else is said of.
fn rest(members: &mut Members<'_>) {
    if ["properties", "patternProperties"].iter().any(|name| members.loss(name) == Loss::Places) {
        members.set("additionalProperties", Fate::Goes(Loss::Places));
    }
    if members.loss("prefixItems") == Loss::Places {
        members.set("items", Fate::Goes(Loss::Places));
    }
    if members.whole_loss() == Loss::Places {
        members.set("unevaluatedProperties", Fate::Goes(Loss::Places));
        members.set("unevaluatedItems", Fate::Goes(Loss::Places));
    }
}

//! The keywords that draft 2020-12 has, and what their values are.

use super::plain::Plain;

/// What the value of a keyword is, by the schemas of that draft.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    /// A value without schemas in it.
    Plain(Plain),
    Schema,
    /// A schema that must not fit.
    Negated,
    /// Schemas, at least one.
    Schemas,
    /// Schemas by name.
    Named,
    /// Schemas by what names look like.
    ByPattern,
    /// Each of them a schema or a list of names.
    Dependencies,
}

impl Shape {
    /// None of what is no keyword, and may say anything.
    pub(super) fn of(keyword: &str) -> Option<Self> {
        Some(match keyword {
            // The last one is of older drafts, and counts beside a list of items only.
            "items"
            | "contains"
            | "additionalProperties"
            | "propertyNames"
            | "if"
            | "then"
            | "else"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "contentSchema"
            | "additionalItems" => Self::Schema,
            "not" => Self::Negated,
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => Self::Schemas,
            "properties" | "$defs" | "definitions" | "dependentSchemas" => Self::Named,
            "patternProperties" => Self::ByPattern,
            "dependencies" => Self::Dependencies,
            keyword => Self::Plain(plain(keyword)?),
        })
    }
}

fn plain(keyword: &str) -> Option<Plain> {
    Some(match keyword {
        "$schema" | "$comment" | "title" | "description" | "format" | "contentEncoding" | "contentMediaType" => {
            Plain::Text
        }
        "$ref" | "$dynamicRef" | "$recursiveRef" => Plain::Reference,
        "$id" => Plain::Id,
        "$anchor" | "$dynamicAnchor" | "$recursiveAnchor" => Plain::Anchor,
        "$vocabulary" => Plain::Flags,
        "pattern" => Plain::Regex,
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => Plain::Bool,
        "minimum" | "maximum" => Plain::Number,
        "exclusiveMinimum" | "exclusiveMaximum" => Plain::Exclusive,
        "multipleOf" => Plain::Positive,
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minContains" | "maxContains" | "minProperties"
        | "maxProperties" => Plain::Count,
        "enum" | "examples" => Plain::List,
        "required" => Plain::Names,
        "type" => Plain::Types,
        "dependentRequired" => Plain::NamesByName,
        _ => return None,
    })
}

/// Whether the schemas of a keyword are of the very value that the schema around them is of, or names of its properties
/// are left out: what they say no more of properties and elements, it does not say either.
pub(super) fn is_in_place(keyword: &str) -> bool {
    matches!(
        keyword,
        "allOf"
            | "anyOf"
            | "oneOf"
            | "if"
            | "then"
            | "else"
            | "dependentSchemas"
            | "dependencies"
            | "patternProperties"
    )
}

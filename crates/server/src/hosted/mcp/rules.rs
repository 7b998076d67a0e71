//! Which tools of a server may be called, and which calls need an approval: the stricter of what the request and what the
//! operator says.

use wire::json::{Invalid, Kind, Raw};

use crate::config::{McpServerConfig, RequireApproval};

/// The rules of one server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Rules {
    /// The operator knows the server: what it says of its tools is believed.
    declared: bool,
    allowed: Filter,
    operators_allowed: Option<Vec<String>>,
    approval: Approval,
    operators_approval: Option<RequireApproval>,
}

/// Some of a server's tools; those that have all that it names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Filter {
    names: Option<Vec<String>>,
    read_only: Option<bool>,
}

/// `require_approval` of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Approval {
    /// The request does not say.
    #[default]
    Unsaid,
    Always,
    Never,
    Some {
        always: Option<Filter>,
        never: Option<Filter>,
    },
}

impl Rules {
    pub(super) fn read(
        allowed_tools: Option<Raw<'_>>,
        require_approval: Option<Raw<'_>>,
        declared: Option<&McpServerConfig>,
    ) -> Result<Self, Invalid> {
        Ok(Self {
            declared: declared.is_some(),
            allowed: allowed_tools.map_or(Ok(Filter::default()), allowed).map_err(|it| it.at("allowed_tools"))?,
            operators_allowed: declared.and_then(|server| server.allowed_tools.clone()),
            approval: require_approval
                .map_or(Ok(Approval::Unsaid), approval)
                .map_err(|it| it.at("require_approval"))?,
            operators_approval: declared.and_then(|server| server.require_approval),
        })
    }

    /// The filter of `allowed_tools` narrows what the client has asked for itself: there the server's own word will do.
    pub(super) fn allows(&self, tool: &str, annotations: Option<Raw<'_>>) -> bool {
        self.allows_name(tool) && self.allowed.fits(tool, is_read_only(annotations))
    }

    pub(super) fn operator_allows(&self, tool: &str) -> bool {
        self.operators_allowed.as_ref().is_none_or(|names| names.iter().any(|name| name == tool))
    }

    pub(super) fn allows_name(&self, tool: &str) -> bool {
        let named =
            |names: &Option<Vec<String>>| names.as_ref().is_none_or(|names| names.iter().any(|name| name == tool));
        named(&self.operators_allowed) && named(&self.allowed.names)
    }

    pub(super) fn needs_approval(&self, tool: &str, annotations: Option<Raw<'_>>) -> bool {
        if self.operators_approval == Some(RequireApproval::Always) {
            return true;
        }
        // Nobody vouches for what an unknown server says of itself.
        let read_only = self.declared && is_read_only(annotations);
        let otherwise = self.operators_approval != Some(RequireApproval::Never);
        match &self.approval {
            Approval::Unsaid => otherwise,
            Approval::Always => true,
            Approval::Never => false,
            Approval::Some { always, never } => {
                let fits = |filter: &Option<Filter>| filter.as_ref().is_some_and(|filter| filter.fits(tool, read_only));
                // A filter that says nothing lets nothing run.
                let never = never.as_ref().filter(|filter| filter.names.is_some() || filter.read_only.is_some());
                fits(always) || (!never.is_some_and(|filter| filter.fits(tool, read_only)) && otherwise)
            }
        }
    }
}

impl Filter {
    fn fits(&self, tool: &str, read_only: bool) -> bool {
        let named = self.names.as_ref().is_none_or(|names| names.iter().any(|name| name == tool));
        named && self.read_only.is_none_or(|wanted| wanted == read_only)
    }
}

fn is_read_only(annotations: Option<Raw<'_>>) -> bool {
    annotations.and_then(|annotations| annotations.get("read_only")).is_some_and(|hint| hint.as_str() == "true")
}

fn allowed(raw: Raw<'_>) -> Result<Filter, Invalid> {
    match raw.kind() {
        Kind::Null => Ok(Filter::default()),
        Kind::Array => Ok(Filter { names: Some(names(raw)?), read_only: None }),
        Kind::Object => filter(raw),
        _ => Err(Invalid::expected("one of an array of strings or an object", raw)),
    }
}

fn approval(raw: Raw<'_>) -> Result<Approval, Invalid> {
    match (raw.kind(), raw.as_str()) {
        (Kind::Null, _) => Ok(Approval::Unsaid),
        (Kind::String, "\"always\"") => Ok(Approval::Always),
        (Kind::String, "\"never\"") => Ok(Approval::Never),
        (Kind::String, _) => {
            let found = raw.text().map(|text| text.decode().into_owned()).unwrap_or_default();
            Err(Invalid::value(&found, &["always", "never"]))
        }
        (Kind::Object, _) => {
            let part = |name: &str| match raw.get(name) {
                Some(part) if part.kind() == Kind::Object => filter(part).map(Some).map_err(|invalid| invalid.at(name)),
                Some(part) if !part.is_null() => Err(Invalid::expected("an object", part).at(name)),
                _ => Ok(None),
            };
            Ok(Approval::Some { always: part("always")?, never: part("never")? })
        }
        _ => Err(Invalid::expected("one of a string or an object", raw)),
    }
}

fn filter(raw: Raw<'_>) -> Result<Filter, Invalid> {
    let present = |name: &str| raw.get(name).filter(|value| !value.is_null());
    let names = present("tool_names").map(names).transpose().map_err(|invalid| invalid.at("tool_names"))?;
    let read_only = present("read_only").map(|value| match value.kind() {
        Kind::Bool => Ok(value.as_str() == "true"),
        _ => Err(Invalid::expected("a boolean", value).at("read_only")),
    });
    Ok(Filter { names, read_only: read_only.transpose()? })
}

fn names(raw: Raw<'_>) -> Result<Vec<String>, Invalid> {
    if raw.kind() != Kind::Array {
        return Err(Invalid::expected("an array of strings", raw));
    }
    let name = |(index, element): (usize, Raw<'_>)| {
        let text = element.text().map(|text| text.decode().into_owned());
        text.ok_or_else(|| Invalid::expected("a string", element).at_index(index))
    };
    raw.elements().enumerate().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::McpAddress;

    fn server(allowed: Option<&[&str]>, approval: Option<RequireApproval>) -> McpServerConfig {
        McpServerConfig {
            label: "s".to_owned(),
            at: McpAddress::Url { url: String::new(), headers: Vec::new() },
            allowed_tools: allowed.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
            require_approval: approval,
            optional: false,
            client_headers: false,
            price_per_call: None,
        }
    }

    fn rules(allowed: Option<&str>, approval: Option<&str>, declared: Option<&McpServerConfig>) -> Rules {
        Rules::read(allowed.map(Raw::ours), approval.map(Raw::ours), declared).unwrap()
    }

    const READS: Option<Raw<'static>> = Some(Raw::ours(r#"{"read_only":true}"#));
    const WRITES: Option<Raw<'static>> = Some(Raw::ours(r#"{"read_only":false}"#));

    /// For `a` and `b` as tools that read, and for `a` as one that writes.
    fn needs(rules: &Rules) -> [bool; 3] {
        [rules.needs_approval("a", READS), rules.needs_approval("b", READS), rules.needs_approval("a", WRITES)]
    }

    #[test]
    fn every_form_of_require_approval_with_every_word_of_the_operator() {
        let (always, never) = (Some(RequireApproval::Always), Some(RequireApproval::Never));
        let (all, none) = ([true; 3], [false; 3]);
        // What is asked for; then without a declared server, with one that says nothing, and with one that says `never`.
        let cases = [
            (None, all, all, none),
            (Some("null"), all, all, none),
            (Some(r#""always""#), all, all, all),
            (Some(r#""never""#), none, none, none),
            (Some("{}"), all, all, none),
            (Some(r#"{"always":null,"never":null}"#), all, all, none),
            (Some(r#"{"never":{"tool_names":["a"]}}"#), [false, true, false], [false, true, false], none),
            (Some(r#"{"always":{"tool_names":["a"]}}"#), all, all, [true, false, true]),
            (
                Some(r#"{"always":{"tool_names":["a"]},"never":{"tool_names":["a","b"]}}"#),
                [true, false, true],
                [true, false, true],
                [true, false, true],
            ),
            // The hint of a server that nobody vouches for counts for nothing.
            (Some(r#"{"never":{"read_only":true}}"#), all, [false, false, true], none),
            (
                Some(r#"{"always":{"read_only":false},"never":{"read_only":true}}"#),
                all,
                [false, false, true],
                [false, false, true],
            ),
            (Some(r#"{"never":{"tool_names":["a"],"read_only":true}}"#), all, [false, true, true], none),
            // A filter that names nothing lets nothing run.
            (Some(r#"{"never":{}}"#), all, all, none),
        ];
        for (asked, unknown, silent, lenient) in cases {
            assert_eq!(needs(&rules(None, asked, None)), unknown, "{asked:?}");
            assert_eq!(needs(&rules(None, asked, Some(&server(None, None)))), silent, "{asked:?}, declared");
            assert_eq!(needs(&rules(None, asked, Some(&server(None, never)))), lenient, "{asked:?}, never");
            let forced = rules(None, asked, Some(&server(None, always)));
            assert_eq!(needs(&forced), all, "{asked:?}, always");
        }
    }

    #[test]
    fn both_must_allow_a_tool() {
        for (asked, operator, expected) in [
            (None, None, [true, true, true]),
            (Some("null"), None, [true, true, true]),
            (Some("[]"), None, [false, false, false]),
            (Some(r#"["a"]"#), None, [true, false, true]),
            (Some(r#"{"tool_names":["a"]}"#), None, [true, false, true]),
            (Some(r#"{"read_only":true}"#), None, [true, true, false]),
            (Some(r#"{"tool_names":["a"],"read_only":true}"#), None, [true, false, false]),
            (None, Some(&["b"][..]), [false, true, false]),
            (Some(r#"["a"]"#), Some(&["b"][..]), [false, false, false]),
            (Some(r#"["a","b"]"#), Some(&["b"][..]), [false, true, false]),
        ] {
            let rules = rules(asked, None, Some(&server(operator, None)));
            let found = [rules.allows("a", READS), rules.allows("b", READS), rules.allows("a", WRITES)];
            assert_eq!(found, expected, "{asked:?} {operator:?}");
        }
    }

    #[test]
    fn what_is_neither_form_is_told_with_its_place() {
        let at = |allowed: Option<&str>, approval: Option<&str>| {
            Rules::read(allowed.map(Raw::ours), approval.map(Raw::ours), None).unwrap_err().path
        };
        for (allowed, path) in [
            ("7", "allowed_tools"),
            (r#""a""#, "allowed_tools"),
            (r#"["a",7]"#, "allowed_tools[1]"),
            (r#"{"tool_names":"a"}"#, "allowed_tools.tool_names"),
            (r#"{"read_only":1}"#, "allowed_tools.read_only"),
        ] {
            assert_eq!(at(Some(allowed), None), path);
        }
        for (approval, path) in [
            (r#""sometimes""#, "require_approval"),
            ("[]", "require_approval"),
            (r#"{"always":[]}"#, "require_approval.always"),
            (r#"{"never":{"tool_names":[null]}}"#, "require_approval.never.tool_names[0]"),
        ] {
            assert_eq!(at(None, Some(approval)), path);
        }
    }
}

//! From a spec to a [`Provider`]: follow `extends` to the root, then lay each spec over the one before.

use crate::builtin::{FAMILIES, Library};
use crate::spec::{Layer, LayerKind, Places, Provider, Spec};
use crate::yaml::{Document, Env, Field, Problem, Problems, Reader, nearest};

/// The name of a spec that is written in the user's file.
pub const INLINE: &str = "inline";

/// The root: the one spec that extends nothing.
pub(crate) const ROOT: &str = "openai-compatible";

/// A provider from a spec of the library.
///
/// # Errors
/// An unknown name, or mistakes in the spec's text; the latter cannot happen with the built-in library.
pub fn resolve_named(library: Library<'_>, name: &str, env: Env<'_>) -> Result<Provider, Problems> {
    let mut layers = chain(library, name, env)?;
    add_families(&mut layers, env)?;
    Ok(Provider::of(name, layers))
}

/// A provider from a spec of the user's, in the configuration or as a file of its own. Its mistakes go to the
/// field's reader; None when what it extends could not be had (which is reported there as well).
pub fn resolve_inline(library: Library<'_>, field: &Field<'_>, env: Env<'_>) -> Option<Provider> {
    let places = Places::of(field);
    let mut section = field.clone().section()?;
    let extends = section.field("extends");
    let spec = Spec::read(section);
    let parent = spec.extends.clone().unwrap_or_else(|| ROOT.to_owned());
    let both = spec.endpoint.base_url.is_some();
    let layers = chain(library, &parent, env).and_then(|mut layers| {
        layers.push(Layer { kind: LayerKind::User, spec, places });
        add_families(&mut layers, env)?;
        Ok(layers)
    });
    match layers {
        Ok(layers) => {
            let provider = Provider::of(INLINE, layers);
            if let Some(name) =
                field.clone().section().and_then(|mut section| section.section("endpoint").field("name"))
            {
                provider.check_name(&name, both);
            }
            Some(provider)
        }
        Err(Problems(problems)) => {
            let place = extends.as_ref().unwrap_or(field);
            // The spec's name as it is written: what a variable holds is not repeated.
            let written = extends.as_ref().map_or_else(|| format!("`{parent}`"), Field::found);
            for problem in problems {
                place.problem(problem.message.replace(&format!("`{parent}`"), &written), problem.help);
            }
            None
        }
    }
}

impl Provider {
    /// Reports a name for an address that there is not, or that comes beside another address.
    pub fn check_name(&self, field: &Field<'_>, has_other: bool) {
        let Some(name) = field.text() else { return };
        if has_other {
            field.problem("an address has a name or is given, not both", None);
        } else if !self.endpoints.iter().any(|(known, _)| *known == name) {
            let known: Vec<&str> = self.endpoints.iter().map(|(name, _)| name.as_str()).collect();
            let near = nearest(&name, &known).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
            let help = match known.as_slice() {
                [] => "the spec has no `endpoints`".to_owned(),
                known => format!("{near}known: {}", known.join(", ")),
            };
            field.problem(format!("there is no address {}", field.found()), Some(help));
        }
    }
}

/// The spec and all that it extends, root first.
fn chain(library: Library<'_>, name: &str, env: Env<'_>) -> Result<Vec<Layer>, Problems> {
    let mut layers = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    let mut next = Some(name.to_owned());
    while let Some(name) = next {
        if seen.contains(&name) {
            let way = format!("{} -> {name}", seen.join(" -> "));
            return Err(problem(&name, "extends", format!("specs extend each other in a circle: {way}"), None).into());
        }
        let layer = load(library, &name, env)?;
        next = match &layer.spec.extends {
            None if name == ROOT => None,
            extends => Some(extends.clone().unwrap_or_else(|| ROOT.to_owned())),
        };
        seen.push(name);
        layers.push(layer);
    }
    layers.reverse();
    Ok(layers)
}

/// Puts what is known of models wherever they are served over the root, where the last word is that it holds. All that
/// specs say themselves lies over it.
fn add_families(layers: &mut Vec<Layer>, env: Env<'_>) -> Result<(), Problems> {
    let said = layers.iter().rev().find_map(|layer| layer.spec.families);
    if said == Some(true) {
        let (name, text) = FAMILIES;
        layers.insert(1.min(layers.len()), read(name, text, env)?);
    }
    Ok(())
}

fn load(library: Library<'_>, name: &str, env: Env<'_>) -> Result<Layer, Problems> {
    let Some(text) = library.text(name) else {
        let names: Vec<&str> = library.names().collect();
        let near = nearest(name, &names).map(|near| format!("did you mean `{near}`? "));
        let help = format!("{}specs: {}", near.unwrap_or_default(), names.join(", "));
        return Err(problem(name, "", format!("there is no spec `{name}`"), Some(help)).into());
    };
    read(name, text, env)
}

fn read(name: &str, text: &str, env: Env<'_>) -> Result<Layer, Problems> {
    let document = Document::parse(&file(name), text)?;
    let reader = Reader::new(&document, env);
    let spec = Spec::read(reader.root());
    let places = Places::of(&reader.root_field());
    let problems = reader.finish();
    if problems.is_empty() { Ok(Layer { kind: LayerKind::BuiltIn, spec, places }) } else { Err(Problems(problems)) }
}

fn problem(name: &str, path: &str, message: String, help: Option<String>) -> Problem {
    Problem { file: file(name), position: None, path: path.to_owned(), message, help }
}

fn file(name: &str) -> String {
    format!("specs/{name}.yaml")
}

#[cfg(test)]
mod tests {
    use bridge::{DeveloperRole, JsonSchema, LimitField, Parameter};

    use super::*;
    use crate::spec::{Auth, Wire};

    fn none(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn every_built_in_spec_resolves() {
        for name in Library::BUILTIN.names() {
            let provider = resolve_named(Library::BUILTIN, name, &none).unwrap();
            assert_eq!(provider.spec_name, name);
            if let Some(url) = &provider.base_url {
                // A server on this machine wants no key.
                let local = url.starts_with("http://127.0.0.1:");
                assert!(local || url.starts_with("https://"), "{name}: {url}");
                assert!(!url.ends_with('/'), "{name}: {url}");
                assert!(local || !provider.key_env.is_empty() || provider.token.is_some(), "{name}");
            }
            // A name says where it is, and every address could be used.
            let layer = provider.layers.last().map(|layer| &layer.spec.endpoint);
            assert!(layer.is_none_or(|own| own.name.is_none() || own.name == provider.endpoint_name), "{name}");
            for (_, url) in &provider.endpoints {
                assert!(url.starts_with("https://") && !url.ends_with('/'), "{name}: {url}");
            }
        }
    }

    #[test]
    fn specs_say_what_they_should() {
        let resolve = |name| resolve_named(Library::BUILTIN, name, &none).unwrap();
        let deepseek = resolve("deepseek");
        assert_eq!(deepseek.base_url.as_deref(), Some("https://api.deepseek.com"));
        assert_eq!(deepseek.key_env, ["DEEPSEEK_API_KEY"]);
        assert_eq!(deepseek.dialect.json_schema, JsonSchema::JsonObject);
        let openai = resolve("openai");
        assert_eq!(openai.dialect.limit_field, LimitField::MaxCompletionTokens);
        assert_eq!(openai.dialect.developer_role, DeveloperRole::Developer);
        let demo = resolve("demo");
        assert_eq!((demo.wire, demo.auth, demo.default_model.as_deref()), (Wire::Demo, Auth::None, Some("demo")));
        assert!(resolve("moonshot").dialect.drops(Parameter::Temperature));
        assert_eq!(resolve("openai-compatible").base_url, None);
    }

    /// What nobody asked for: a model's own window, and that of all models, wherever each is said.
    #[test]
    fn a_limit_of_our_own_leaves_room_for_the_prompt() {
        let small = "wire: messages\ncontext_window: 16384\nmodels:\n  - {match: tiny, context_window: 1000}\n  - {match: large, \
                     context_window: 1000000}\n  - {match: terse, request: {blocks: {default_limit: 4096}}}\n  - {match: chat, \
                     wire: chat}";
        let library = Library(&[("openai-compatible", ""), ("small", small), ("unknown", "wire: messages")]);
        for (spec, model, limit) in [
            ("small", "m", 8192),
            ("small", "tiny", 500),
            ("small", "large", 32_000),
            ("small", "terse", 4096),
            ("small", "chat", 32_000),
            ("unknown", "m", 32_000),
        ] {
            let dialect = resolve_named(library, spec, &none).unwrap().for_model(model).dialect;
            assert_eq!(dialect.request.blocks.default_limit, limit, "{spec} {model}");
        }
        for name in Library::BUILTIN.names() {
            let provider = resolve_named(Library::BUILTIN, name, &none).unwrap();
            let limit = provider.dialect.request.blocks.default_limit;
            assert!(provider.context_window.is_none_or(|window| limit <= window / 2), "{name}: {limit}");
        }
    }

    #[test]
    fn what_goes_wrong_is_said() {
        let library = Library(&[
            ("openai-compatible", ""),
            ("a", "extends: b"),
            ("b", "extends: a"),
            ("typo", "limit_feild: max_tokens\nauth: basic\ndrop: [temprature]"),
            ("orphan", "extends: nowhere"),
        ]);
        let cases = [
            ("a", "specs/a.yaml: extends: specs extend each other in a circle: a -> b -> a"),
            ("nowhere", "specs/nowhere.yaml: there is no spec `nowhere`; specs: openai-compatible, a, b, typo, orphan"),
            ("tpyo", "specs/tpyo.yaml: there is no spec `tpyo`; did you mean `typo`? specs: "),
            ("orphan", "specs/nowhere.yaml: there is no spec `nowhere`; specs: openai-compatible, a, b, typo, orphan"),
            (
                "typo",
                "specs/typo.yaml:1:1: unknown key `limit_feild`; did you mean `limit_field`?\n\
                 specs/typo.yaml:2:7: auth: expected one of `bearer`, `api-key-header`, `x-api-key`, `none`, found `basic`\n\
                 specs/typo.yaml:3:8: drop[0]: expected one of ",
            ),
        ];
        for (name, expected) in cases {
            let problems = resolve_named(library, name, &none).unwrap_err().to_string();
            assert!(problems.starts_with(expected), "{name}: {problems}");
        }
    }

    #[test]
    fn mistakes_in_a_request_section_are_found() {
        let text = "spec:\n  request:\n    tools: {max: -1, native: {web_serch: '{}'}}\n    reasoning:\n      \
                    {ladder: {huge: x}, on: 'thinking', replay: sometimes}\n    options: {temperature: {min: 0}}\n";
        let document = Document::parse("godex.yaml", text).unwrap();
        let reader = Reader::new(&document, &none);
        let mut root = reader.root();
        resolve_inline(Library::BUILTIN, &root.field("spec").unwrap(), &none).unwrap();
        root.finish();
        let problems = Problems(reader.finish()).to_string();
        for expected in [
            "spec.request.tools.max: expected a whole number from 0 to 100000",
            "spec.request.tools.native.web_serch: unknown key `web_serch`",
            "spec.request.reasoning.ladder.huge: unknown key `huge`; known keys: none, minimal, low",
            "spec.request.reasoning.on: expected a JSON object in quotes",
            "spec.request.reasoning.replay: expected one of `never`, `tools`, `always`, found `sometimes`",
            "spec.request.options.temperature: expected `min` and `max`",
        ] {
            assert!(problems.contains(expected), "{expected}\n{problems}");
        }
    }

    #[test]
    fn mistakes_in_rules_for_errors_are_found() {
        let text = "answer:\n  errors:\n  - {code: 1}\n  - {means: quota}\n  - {status: 42, means: quota}\n  \
                    - {words: [], means: quota}\n  - {code: x, means: qouta}\n  - {codes: x, means: quota}\n  - oops\n  \
                    - {code: x, means: quota, parameter: stop}\n  - {code: x, means: unsupported, parameter: max_tokens}\n";
        let document = Document::parse("mine.yaml", text).unwrap();
        let reader = Reader::new(&document, &none);
        let provider = resolve_inline(Library::BUILTIN, &reader.root_field(), &none).unwrap();
        let root = resolve_named(Library::BUILTIN, ROOT, &none).unwrap();
        assert_eq!(provider.dialect, root.dialect);
        let problems = Problems(reader.finish()).to_string();
        let needs = "a rule for errors needs `means`, and at least one of `status`, `code`, `words`, \
                     `details`, `names_wait`, `no_message`";
        for expected in [
            &format!("mine.yaml:3:5: answer.errors[0]: {needs}"),
            &format!("mine.yaml:4:5: answer.errors[1]: {needs}"),
            "answer.errors[2].status: expected a whole number from 100 to 599, found `42`",
            &format!("mine.yaml:6:5: answer.errors[3]: {needs}"),
            "answer.errors[4].means: expected one of `auth`, `quota`, ",
            "found `qouta`; did you mean `quota`?",
            "answer.errors[5]: unknown key `codes`; did you mean `code`?",
            "answer.errors[6]: expected a mapping, found a string",
            "answer.errors[7].parameter: only what means `unsupported` or `unsupported_value` is about a parameter",
            "answer.errors[8].parameter: expected one of `temperature`, ",
        ] {
            assert!(problems.contains(expected), "{expected}\n{problems}");
        }
    }

    #[test]
    fn mistakes_in_entries_for_models_are_found() {
        let text = "models:\n- plain\n- {limit_field: max_tokens}\n- {match: [], wire: chat}\n- match: x-*\n  \
                    limit_feild: max_tokens\n  request: {content: {images: some}}\n- {match: y, auth: none}\n";
        let document = Document::parse("mine.yaml", text).unwrap();
        let reader = Reader::new(&document, &none);
        resolve_inline(Library::BUILTIN, &reader.root_field(), &none).unwrap();
        let problems = Problems(reader.finish()).to_string();
        let expected = "mine.yaml:3:3: models[1]: an entry for models needs `match`; a name, a pattern such as `glm-*v*`, \
                        or a list of them
mine.yaml:4:3: models[2]: an entry for models needs `match`; a name, a pattern such as `glm-*v*`, or a list of them
mine.yaml:6:3: models[3]: unknown key `limit_feild`; did you mean `limit_field`?
mine.yaml:7:31: models[3].request.content.images: expected one of `none`, `data`, `all`, found `some`; did you mean `none`?
mine.yaml:8:14: models[4]: unknown key `auth`; known keys: ";
        assert!(problems.starts_with(expected), "{problems}");
    }

    /// Over the generic spec, under all others, and only where they are wanted.
    #[test]
    fn families_lie_between_the_generic_spec_and_the_others() {
        use bridge::{CacheMarks, Replay, ReplayField};
        let reasoning = |provider: &Provider, model: &str| {
            let rules = provider.for_model(model).dialect.request.reasoning;
            (rules.replay, rules.field, rules.placeholder)
        };
        let inline = |text: &str| {
            let document = Document::parse("mine.yaml", text).unwrap();
            let reader = Reader::new(&document, &none);
            let provider = resolve_inline(Library::BUILTIN, &reader.root_field(), &none).unwrap();
            assert_eq!(reader.finish(), [], "{text}");
            provider
        };
        let (model, field) = ("deepseek-ai/DeepSeek-V4-Pro:fp8", ReplayField::ReasoningContent);
        let known = (Replay::Tools, field, true);
        for (text, expected) in [
            ("{}", known),
            ("extends: openai-compatible", known),
            ("extends: together", known),
            ("families: false", (Replay::Never, field, false)),
            (
                "extends: deepseek\nfamilies: true\nrequest: {reasoning: {placeholder: false}}",
                (Replay::Tools, field, false),
            ),
            ("request: {reasoning: {replay: always}}", (Replay::Always, field, true)),
            (
                "models: [{match: '*v4-pro*', request: {reasoning: {field: reasoning}}}]",
                (Replay::Tools, ReplayField::Reasoning, true),
            ),
            ("extends: openrouter", (Replay::Always, ReplayField::Reasoning, true)),
            ("extends: groq", (Replay::Never, field, true)),
        ] {
            assert_eq!(reasoning(&inline(text), model), expected, "{text}");
        }
        let marks = |spec: &str, model: &str| {
            let provider = resolve_named(Library::BUILTIN, spec, &none).unwrap();
            provider.for_model(model).dialect.request.messages.cache_marks
        };
        assert_eq!(marks("openai-compatible", "us.anthropic.claude-opus-5"), CacheMarks::NotTools);
        assert_eq!(marks("openrouter", "anthropic/claude-opus-5"), CacheMarks::None);
        assert_eq!(marks("openrouter", "qwen/qwen3.7-plus"), CacheMarks::All);
        // Each value says where it is from, and the whole reads as a spec that comes to the same.
        let shown = inline("{}").show(Some(model));
        assert!(shown.contains("    replay: tools  # specs/families.yaml:"), "{shown}");
        assert!(shown.contains("families: true  # specs/openai-compatible.yaml:"), "{shown}");
        assert_eq!(inline(&shown).dialect, inline("{}").for_model(model).dialect);
    }

    #[test]
    fn an_inline_spec_lies_over_what_it_extends() {
        let text = "spec: {extends: moonshot, limit_field: max_completion_tokens, drop: []}\nbad: {extends: nowhere}";
        let document = Document::parse("godex.yaml", text).unwrap();
        let reader = Reader::new(&document, &none);
        let mut root = reader.root();
        let provider = resolve_inline(Library::BUILTIN, &root.field("spec").unwrap(), &none).unwrap();
        assert_eq!(provider.spec_name, INLINE);
        assert_eq!(provider.key_env, ["MOONSHOT_API_KEY"]);
        assert_eq!(provider.dialect.limit_field, LimitField::MaxCompletionTokens);
        assert_eq!(provider.dialect.drop, []);
        assert!(resolve_inline(Library::BUILTIN, &root.field("bad").unwrap(), &none).is_none());
        root.finish();
        let problems = Problems(reader.finish()).to_string();
        assert!(problems.starts_with("godex.yaml:2:16: bad.extends: there is no spec `nowhere`"), "{problems}");
    }
}

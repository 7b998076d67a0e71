//! A provider as YAML: what it comes to, with the place where each value was said; or only what the user said.

use wire::visible::visible;

use crate::spec::{
    Endpoint, Entry, Layer, LayerKind, Matches, Places, Price, Provider, Setting, Source, Spec, Variables, Yaml,
};

/// A line to print: the path of the value, the value, and a comment.
type Line = (String, String, Option<String>);

impl Provider {
    /// The whole spec, each value with its origin after it; for one model, or with the entries for its models.
    /// Reads as a spec that comes to the same.
    pub fn show(&self, model: Option<&str>) -> String {
        let matches = model.map(|model| self.matches(model)).unwrap_or_default();
        let origin = |path: &str| Some(self.origin(path, &matches).unwrap_or_else(|| "default".to_owned()));
        let settings = self.whole(&matches).into_iter().filter(|(path, _)| !is_error_rule(path));
        let settings = settings.map(|(path, value)| (path.clone(), value, origin(&path)));
        let mut lines = nest(settings.chain(self.error_rules(&matches)), 0);
        if model.is_none() {
            lines.extend(self.show_models());
        }
        lines.join("\n") + "\n"
    }

    /// What the user's own spec says, as its lines, without what came from variables; None where a built-in one is
    /// used as it is.
    pub fn user_spec(&self) -> Option<Vec<String>> {
        self.user_lines(Variables::Hidden)
    }

    /// The same for another file: with the variables themselves.
    pub fn user_spec_as_written(&self) -> Option<Vec<String>> {
        self.user_lines(Variables::AsWritten)
    }

    fn user_lines(&self, variables: Variables) -> Option<Vec<String>> {
        let layer = self.layers.iter().find(|layer| layer.kind == LayerKind::User)?;
        let said = layer.spec.settings(&|_| Source { places: Some(&layer.places), variables });
        let mut lines = nest(said.into_iter().map(|(path, value)| (path, value, None)), 0);
        lines.extend(models_of(layer, variables));
        Some(lines)
    }

    /// The query of every request as YAML, without secrets.
    pub fn shown_query(&self) -> String {
        let said = self.whole(&Matches::default()).into_iter();
        said.filter(|(path, _)| path == "endpoint.query").map(|(_, value)| value).collect()
    }

    /// What the spec and the entry put into requests in confidence: values of the query, and of variables.
    pub fn secrets(&self) -> Vec<String> {
        let shown = |name: &str| name.ends_with("version");
        let query = self.query.iter().filter(|(name, _)| !shown(name)).map(|(_, value)| value.clone());
        // Each as it is sent: what a variable holds may be a part of it.
        let headers = self.layers.iter().flat_map(|layer| {
            let filled = |name: &str| Source::hiding(&layer.places).is_filled(&format!("headers.{name}"));
            layer.spec.fixed_headers().filter(move |(name, _)| filled(name)).map(|(_, text)| text.to_owned())
        });
        let places = self.layers.iter().flat_map(|layer| {
            let entries = layer.spec.models.entries.iter().map(|entry| &entry.places);
            entries.chain(std::iter::once(&layer.places))
        });
        query.chain(headers).chain(places.flat_map(|places| places.secrets().map(str::to_owned))).collect()
    }

    /// What the user's entry for the provider says of models beyond their names, as the elements of a list.
    pub fn entry_models(&self) -> Vec<String> {
        let layer = self.layers.iter().find(|layer| layer.kind == LayerKind::Entry);
        let entries = layer.into_iter().flat_map(|layer| &layer.spec.models.entries);
        entries.flat_map(|entry| element(entry, |_| false, false, Variables::Hidden)).collect()
    }

    /// What the user's entry for the provider says of prices, as the lines of a mapping.
    pub fn entry_prices(&self) -> Vec<String> {
        let layer = self.layers.iter().find(|layer| layer.kind == LayerKind::Entry);
        let prices = layer.into_iter().flat_map(|layer| layer.spec.prices.iter().map(move |price| (layer, price)));
        let line = |(layer, (pattern, price)): (&Layer, &(String, Price))| {
            let shown = price.shown(&format!("prices.{pattern}"), Source::hiding(&layer.places));
            format!("{}: {shown}", pattern.yaml())
        };
        prices.map(line).collect()
    }

    /// The way to every value of the whole spec.
    #[cfg(test)]
    pub(crate) fn whole_paths(&self) -> Vec<String> {
        self.whole(&Matches::default()).into_iter().map(|(path, _)| path).collect()
    }

    fn whole(&self, matches: &Matches) -> Vec<Setting> {
        let endpoint = Endpoint {
            base_url: self.base_url.clone(),
            path: Some(self.path.clone()),
            query: Some(self.query.clone()),
        };
        let from = |path: &str| self.places(path, matches).map_or(Source::UNKNOWN, Source::hiding);
        Spec::whole(self, endpoint, &self.with(matches)).settings(&from)
    }

    fn origin(&self, path: &str, matches: &Matches) -> Option<String> {
        self.places(path, matches)?.find(path)
    }

    /// Where a value was said last.
    fn places(&self, path: &str, matches: &Matches) -> Option<&Places> {
        let mut entries = self.entries().collect::<Vec<_>>();
        self.layers.iter().rev().find_map(|layer| {
            let own = entries.split_off(entries.len() - layer.spec.models.entries.len());
            let fitting = own.iter().rev().filter(|(index, _)| matches.contains(*index));
            let has = |places: &Places| places.find(path).is_some();
            let says_it = |entry: &Entry| says(&entry.settings(Variables::Hidden), path) && has(&entry.places);
            let of_entry = fitting.map(|(_, entry)| *entry).find(|entry| says_it(entry)).map(|entry| &entry.places);
            let of_layer = || has(&layer.places) && says(&layer.spec.settings(&|_| Source::UNKNOWN), path);
            of_entry.or_else(|| of_layer().then_some(&layer.places))
        })
    }

    /// The rules for errors in the order in which they count: layers add to them. Each is written as it is in its own
    /// layer, so that what came from a variable there is not shown.
    fn error_rules(&self, matches: &Matches) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        let mut add = |said: Vec<Setting>, places: &Places| {
            for (path, value) in said.into_iter().filter(|(path, _)| is_error_rule(path)) {
                if !lines.iter().any(|(_, known, _)| *known == value) {
                    let origin = places.find(&path).or_else(|| places.find(ERRORS));
                    lines.push((path, value, origin));
                }
            }
        };
        let mut entries = self.entries().collect::<Vec<_>>();
        for layer in self.layers.iter().rev() {
            let own = entries.split_off(entries.len() - layer.spec.models.entries.len());
            for (_, entry) in own.iter().rev().filter(|(index, _)| matches.contains(*index)) {
                add(entry.settings(Variables::Hidden), &entry.places);
            }
            add(layer.spec.settings(&|_| Source::hiding(&layer.places)), &layer.places);
        }
        lines
    }

    fn show_models(&self) -> Vec<String> {
        let entries: Vec<(usize, &Entry)> = self
            .layers
            .iter()
            .enumerate()
            .flat_map(|(depth, layer)| layer.spec.models.entries.iter().map(move |entry| (depth, entry)))
            .collect();
        let plain = self.models.iter().filter(|name| !entries.iter().any(|(_, entry)| entry.names(name)));
        let origin = |name: &str| {
            let layer =
                self.layers.iter().rev().find(|layer| layer.spec.models.names.iter().any(|known| known == name));
            layer.and_then(|layer| layer.places.find("models")).unwrap_or_default()
        };
        let mut lines: Vec<String> =
            plain.map(|name| format!("  - {}  # {}", name.yaml(), visible(&origin(name)))).collect();
        for (depth, entry) in entries {
            // What a later layer says of all models is the last word.
            let later = self.layers.iter().skip(depth + 1);
            let over: Vec<Setting> = later.flat_map(|layer| layer.spec.settings(&|_| Source::UNKNOWN)).collect();
            let is_hidden = |path: &str| !is_error_rule(path) && says(&over, path);
            lines.extend(element(entry, is_hidden, true, Variables::Hidden));
        }
        if !lines.is_empty() {
            lines.insert(0, "models:".to_owned());
        }
        lines
    }
}

/// Where the rules for errors are.
const ERRORS: &str = "answer.errors";

fn is_error_rule(path: &str) -> bool {
    path.strip_prefix(ERRORS).is_some_and(|rest| rest.starts_with('['))
}

fn says(said: &[Setting], path: &str) -> bool {
    said.iter().any(|(known, _)| known == path)
}

/// The `models` of one layer, without comments.
fn models_of(layer: &Layer, variables: Variables) -> Vec<String> {
    let models = &layer.spec.models;
    let mut lines: Vec<String> = models.names.iter().map(|name| format!("  - {}", name.yaml())).collect();
    lines.extend(models.entries.iter().flat_map(|entry| element(entry, |_| false, false, variables)));
    if !lines.is_empty() {
        lines.insert(0, "models:".to_owned());
    }
    lines
}

/// An entry for models as an element of the list.
fn element(entry: &Entry, is_hidden: impl Fn(&str) -> bool, with_origin: bool, variables: Variables) -> Vec<String> {
    let patterns = match entry.patterns.as_slice() {
        [one] => one.yaml(),
        several => several.to_vec().yaml(),
    };
    let settings = entry.settings(variables).into_iter().filter(|(path, _)| !is_hidden(path));
    let head = ("match".to_owned(), patterns, with_origin.then(|| entry.places.start()));
    let rest = settings.map(|(path, value)| {
        let origin = entry.places.find(&path).filter(|_| with_origin);
        (path, value, origin)
    });
    let mut lines = nest(std::iter::once(head).chain(rest), 4);
    if let Some(first) = lines.first_mut() {
        first.replace_range(2..3, "-");
    }
    lines
}

/// Lines of nested mappings: values whose paths begin alike are written under the same keys.
fn nest(lines: impl Iterator<Item = Line>, indent: usize) -> Vec<String> {
    let mut out = Vec::new();
    let mut above: Vec<String> = Vec::new();
    for (path, value, comment) in lines {
        let mut keys: Vec<String> = path.split('.').map(str::to_owned).collect();
        let last = keys.pop().unwrap_or_default();
        // An element of a list has a line of its own.
        let mark = match last.split_once('[') {
            Some((list, _)) => {
                keys.push(list.to_owned());
                "-".to_owned()
            }
            None => format!("{last}:"),
        };
        let shared = above.iter().zip(&keys).take_while(|(old, new)| old == new).count();
        for (depth, key) in keys.iter().enumerate().skip(shared) {
            out.push(format!("{:1$}{key}:", "", indent + 2 * depth));
        }
        let comment = comment.map(|comment| format!("  # {}", visible(&comment))).unwrap_or_default();
        out.push(format!("{:1$}{mark} {value}{comment}", "", indent + 2 * keys.len()));
        above = keys;
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::yaml::{Document, Problems, Reader};
    use crate::{Library, Provider, resolve_inline, resolve_named};

    fn none(_: &str) -> Option<String> {
        None
    }

    fn inline(file: &str, text: &str) -> Provider {
        let document = Document::parse(file, text).unwrap_or_else(|problem| panic!("{problem}\n{text}"));
        let reader = Reader::new(&document, &none);
        let provider = resolve_inline(Library::BUILTIN, &reader.root_field(), &none);
        assert_eq!(Problems(reader.finish()).to_string(), "", "{text}");
        provider.unwrap()
    }

    #[test]
    fn what_is_shown_reads_as_the_same() {
        for name in Library::BUILTIN.names() {
            let provider = resolve_named(Library::BUILTIN, name, &none).unwrap();
            let shown = provider.show(None);
            let again = inline("shown.yaml", &shown);
            assert_eq!(
                (&again.dialect, &again.base_url, again.auth),
                (&provider.dialect, &provider.base_url, provider.auth)
            );
            for model in
                provider.models.iter().map(String::as_str).chain(["gpt-5", "gpt-5.6", "glm-4.6v", "x", "claude-5"])
            {
                assert_eq!(again.for_model(model), provider.for_model(model), "{name} {model}\n{shown}");
                let one = inline("one.yaml", &provider.show(Some(model)));
                assert_eq!(one.dialect, provider.for_model(model).dialect, "{name} {model}");
            }
        }
    }

    #[test]
    fn every_value_has_its_origin() {
        let text = "extends: deepseek\nlimit_field: max_completion_tokens\nrequest:\n  tools: {max: 64}\nmodels:\n\
                    - mine\n- match: mine-*\n  request:\n    tools:\n      max: 8\n";
        let provider = inline("./mine.yaml", text);
        let shown = provider.show(None);
        for line in [
            "limit_field: max_completion_tokens  # ./mine.yaml:2\n",
            "    max: 64  # ./mine.yaml:4\n",
            "stream_usage: request  # specs/openai-compatible.yaml:",
            "key_env: DEEPSEEK_API_KEY  # specs/deepseek.yaml:",
            "    call_ids: any  # default\n",
            "  - mine  # ./mine.yaml:5\n",
            "  - match: 'mine-*'  # ./mine.yaml:7\n    request:\n      tools:\n        max: 8  # ./mine.yaml:10\n",
        ] {
            assert!(shown.contains(line), "{line}\n{shown}");
        }
        let one = provider.show(Some("Mine-8b"));
        assert!(one.contains("    max: 8  # ./mine.yaml:10\n") && !one.contains("match"), "{one}");
        assert_eq!(
            provider.user_spec().unwrap().join("\n"),
            "extends: deepseek\nlimit_field: max_completion_tokens\nrequest:\n  tools:\n    max: 64\nmodels:\n  - mine\n  \
             - match: 'mine-*'\n    request:\n      tools:\n        max: 8"
        );
        assert_eq!(resolve_named(Library::BUILTIN, "xai", &none).unwrap().user_spec(), None);
    }

    #[test]
    fn rules_for_errors_add_up_and_each_has_its_origin() {
        let text = "extends: minimax\nanswer:\n  errors:\n    - {code: 1008, words: 'Pay, please', means: auth}\n    \
                    - {status: [400, 413], no_message: true, means: context_overflow, retry: true}\nmodels:\n\
                    - match: big\n  answer:\n    errors: {'too big': context_overflow}\n";
        let provider = inline("./mine.yaml", text);
        let shown = provider.show(None);
        let (own, rest) = shown.split_once("  errors:\n").unwrap().1.split_once("# specs/").unwrap();
        assert_eq!(
            own,
            "    - {code: '1008', words: 'pay, please', means: auth}  # ./mine.yaml:4\n    \
             - {status: [400, 413], no_message: true, means: context_overflow, retry: true}  # ./mine.yaml:5\n    \
             - {code: ['1002', '1039'], means: rate_limit}  "
        );
        for line in [
            "    - {code: '2013', means: invalid_request}  # specs/minimax.yaml:",
            "    - {code: authentication_error, means: auth}  # specs/openai-compatible.yaml:",
            "  - match: big  # ./mine.yaml:7\n    answer:\n      errors:\n        \
             - {words: 'too big', means: context_overflow}",
        ] {
            assert!(rest.contains(line), "{line}\n{shown}");
        }
        let one = provider.show(Some("big"));
        assert!(one.contains("errors:\n    - {words: 'too big', means: context_overflow}  # ./mine.yaml:9\n"), "{one}");
        let again = inline("shown.yaml", &shown);
        for model in ["big", "small"] {
            assert_eq!(again.for_model(model), provider.for_model(model), "{shown}");
        }
        let user = inline("user.yaml", &provider.user_spec().unwrap().join("\n"));
        assert_eq!((&user.dialect, user.for_model("big")), (&provider.dialect, provider.for_model("big")));
    }

    #[test]
    fn what_variables_put_into_rules_is_not_shown() {
        let text = "answer:\n  errors:\n    - {code: '${SECRET}', words: ['too ${SECRET}', plain], means: quota}\n    \
                    - {words: 'all ${SECRET}', means: auth}\nmodels:\n- match: m\n  answer:\n    \
                    errors: [{code: ['${SECRET}'], means: server}]\n";
        let env = |name: &str| (name == "SECRET").then(|| "hush-hush".to_owned());
        let document = Document::parse("mine.yaml", text).unwrap();
        let reader = Reader::new(&document, &env);
        let provider = resolve_inline(Library::BUILTIN, &reader.root_field(), &env).unwrap();
        assert_eq!(Problems(reader.finish()).to_string(), "");
        let rules = provider.for_model("m").dialect.answer.errors;
        assert_eq!(rules.iter().filter(|rule| format!("{rule:?}").contains("hush-hush")).count(), 3);
        let user = |lines: Option<Vec<String>>| lines.unwrap().join("\n");
        for shown in [provider.show(None), provider.show(Some("m")), user(provider.user_spec())] {
            assert!(!shown.contains("hush") && shown.contains("words: ['too redacted', plain]"), "{shown}");
        }
        let written = user(provider.user_spec_as_written());
        for line in [
            "- {code: \"${SECRET}\", words: [\"too ${SECRET}\", plain], means: quota}",
            "- {words: \"all ${SECRET}\", means: auth}",
            "- {code: [\"${SECRET}\"], means: server}",
        ] {
            assert!(written.contains(line), "{line}\n{written}");
        }
    }

    #[test]
    fn the_users_word_is_the_last() {
        let text = "extends: moonshot\nlimit_field: max_tokens\n";
        let provider = inline("mine.yaml", text);
        assert_eq!(provider.for_model("kimi-k3").dialect.limit_field, bridge::LimitField::MaxTokens);
        let builtin = resolve_named(Library::BUILTIN, "moonshot", &none).unwrap();
        assert_eq!(builtin.for_model("kimi-k3").dialect.limit_field, bridge::LimitField::MaxCompletionTokens);
        assert_eq!(inline("again.yaml", &provider.show(None)).for_model("kimi-k3"), provider.for_model("kimi-k3"));
    }
}

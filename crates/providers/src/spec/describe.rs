//! The keys of a spec as documentation shows them: where each is, what it takes, what it says. They come from the same
//! declarations that the reader is made of.

use bridge::{
    AbsentContent, AfterTool, BlockCache, Bounds, CacheKeyField, CacheMarks, CallIds, ChoiceKind, CustomForm,
    DeveloperRole, Effort, EffortField, EmptyText, EofTolerance, ErrorMeaning, ErrorRules, Exclusion, FinishMeaning,
    ForcedWhileThinking, Hosted, ImageInput, ItemIds, JsonSchema, Lacking, LastMessage, LateSystem, LimitField,
    Parallel, Parameter, RefusalForm, Replay, ReplayField, RequiredWord, SchemaRule, StreamUsage, ThinkTags, Thinking,
    ThoughtDisplay, Tokenizer, ToolImages, Turns, UserField,
};

use super::answer::Answer;
use super::catalog::{ApplyPatch, Catalog, Discovery, SubAgents};
use super::request::Request;
use super::terms::Basics;
use super::values::each_word;
use super::{Auth, Wire};

/// A key of a spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecKey {
    /// From the root of the spec: `request.tools.max`.
    pub path: String,
    pub about: &'static str,
    pub takes: Taken,
    /// Whether an entry for single models may say it, too.
    pub of_models: bool,
}

/// What a key takes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Taken {
    /// In words.
    pub form: String,
    /// The words of its vocabulary, each with what it means, if that is not said by its name.
    pub words: Vec<(&'static str, &'static str)>,
}

/// Something that a key can take.
pub(super) trait Takes {
    fn takes() -> Taken;
}

fn form(form: &str) -> Taken {
    Taken { form: form.to_owned(), words: Vec::new() }
}

macro_rules! words {
    ($($type:ident),+ $(,)?) => {
        $(impl Takes for $type {
            fn takes() -> Taken {
                let words = Self::ALL.iter().map(|word| (word.name(), word.about())).collect();
                Taken { form: "one of".to_owned(), words }
            }
        })+
    };
}

each_word!(words);

impl Takes for bool {
    fn takes() -> Taken {
        form("`true` or `false`")
    }
}

impl Takes for u64 {
    fn takes() -> Taken {
        form("number")
    }
}

impl Takes for usize {
    fn takes() -> Taken {
        form("number")
    }
}

impl Takes for String {
    fn takes() -> Taken {
        form("text")
    }
}

impl Takes for Bounds {
    fn takes() -> Taken {
        form("`{min: NUMBER, max: NUMBER}`")
    }
}

impl Takes for ErrorRules {
    fn takes() -> Taken {
        let form = "list of `{status, code, words, details, names_wait, no_message, means, parameter, retry}`, or mapping of words; `means` is one of";
        Taken { form: form.to_owned(), ..ErrorMeaning::takes() }
    }
}

impl<T: Takes> Takes for Option<T> {
    fn takes() -> Taken {
        T::takes()
    }
}

impl<T: Takes> Takes for Vec<T> {
    fn takes() -> Taken {
        let Taken { form, words } = T::takes();
        Taken { form: if words.is_empty() { format!("list of {form}s") } else { "list of".to_owned() }, words }
    }
}

impl<K: Takes, V: Takes> Takes for Vec<(K, V)> {
    fn takes() -> Taken {
        let (keys, values) = (K::takes(), V::takes());
        match (keys.words.is_empty(), values.words.is_empty()) {
            (false, _) => Taken { form: format!("mapping to {}; its keys are", values.form), words: keys.words },
            (true, false) => Taken { form: format!("mapping of {}s to", keys.form), words: values.words },
            (true, true) => form(&format!("mapping of {}s to {}", keys.form, values.form)),
        }
    }
}

/// A key that says `T`.
pub(super) fn key<T: Takes>(path: String, about: &'static str, of_models: bool) -> SpecKey {
    SpecKey { path, about: about.trim_ascii(), takes: T::takes(), of_models }
}

/// Every key of a spec, in the order of the documentation.
pub fn spec_keys() -> Vec<SpecKey> {
    let mut keys = place_keys();
    keys.extend([
        whole("default_model", "The model that is tried first.", "text"),
        whole(
            "models",
            "What is listed, and entries `{match: PATTERN, …}` for single models.",
            "list of names and entries",
        ),
        whole(
            "prices",
            "What models cost, in US dollars for a million tokens; of those that fit a name, its own counts, then the \
             longest pattern. `input` and `output` are needed; `cached_input` and `cache_write` cost what `input` does, and \
             `reasoning` what `output` does, where they are not said. `tiers` are prices of whole answers whose input is \
             `above` so many tokens. They count for the spec's own address only. Without a price, a cost is unknown.",
            "mapping of names and patterns to `{input, cached_input, cache_write, output, reasoning, tiers: [{above, …}], \
             as_of, source}`",
        ),
        key::<Wire>("wire".to_owned(), "Which API is spoken there.", true),
        key::<u64>("context_window".to_owned(), "How many tokens a model takes, input and output together.", true),
    ]);
    keys.extend(Basics::described(""));
    keys.extend(Request::described());
    keys.extend(Answer::described("answer."));
    keys.extend(Catalog::described("catalog."));
    keys.extend(Discovery::described("discovery.").into_iter().map(|key| SpecKey { of_models: false, ..key }));
    keys
}

/// A key of the provider as a whole.
fn whole(path: &str, about: &'static str, form_text: &str) -> SpecKey {
    SpecKey { path: path.to_owned(), about, takes: form(form_text), of_models: false }
}

/// Where the provider is, and who pays.
fn place_keys() -> Vec<SpecKey> {
    vec![
        whole("extends", "The spec below: this one says what differs.", "name of a built-in spec"),
        whole(
            "endpoint.base_url",
            "Where requests go. `{NAME}` in it is filled by `endpoint.params`, else from the environment, else by what \
             follows in `{NAME:-DEFAULT}`.",
            "URL",
        ),
        whole("endpoint.name", "Which of `endpoints` is used, instead of a base URL.", "name"),
        whole("endpoint.params", "What fills the placeholders of the base URL.", "mapping of names to text"),
        whole(
            "endpoint.params_env",
            "The variables that fill the other placeholders; the first that is set.",
            "mapping of names to a variable or a list of them",
        ),
        whole("endpoints", "Addresses to choose from by `endpoint.name`.", "mapping of names to URL"),
        whole("endpoint.path", "What comes after the base URL; `{model}` is the model's name.", "path"),
        whole("endpoint.query", "The query of every request.", "mapping of texts to text"),
        SpecKey {
            takes: Taken {
                form: "`{command: [PROGRAM, …], ttl: 45m}`, or one of".to_owned(),
                words: Auth::ALL.iter().map(|word| (word.name(), word.about())).collect(),
            },
            ..whole(
                "auth",
                "How the key is sent. A `command` prints a token, which is sent as `bearer` where there is no key: it is \
                 run without a shell, again before `ttl` (`15m`) is over, and once when the token is refused, not sooner than 10 seconds after the last time. While it fails, the last token is used until it is refused.",
                "",
            )
        },
        whole(
            "headers",
            "What else goes with every request. `{from: cache_key}` is what the provider gets as the cache key, which is the \
             same for all requests of a session; without one, there is no such header.",
            "mapping of names to text or `{from: cache_key}`",
        ),
        whole(
            "families",
            "Whether what is known of models wherever they are served holds here: `specs/families.yaml`, which lies over the \
             generic spec and under all others.",
            "`true` or `false`",
        ),
        whole(
            "key_env",
            "The variable with its key, the first of them that is set; used only for the spec's own addresses, or when it \
             has none.",
            "text or list of texts",
        ),
        whole(
            "automatic",
            "Whether a key in the environment is enough to use it where there is no configuration; not where such a key \
             opens other things, too. By default it is.",
            "`true` or `false`",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Library, resolve_named};

    /// What `godex providers show` prints is documented, key by key.
    #[test]
    fn every_key_that_is_shown_is_described() {
        let keys = spec_keys();
        let shown = resolve_named(Library::BUILTIN, "openai", &|_| None).unwrap().whole_paths();
        assert!(shown.len() > 40, "{shown:?}");
        for path in shown {
            let path = path.split('[').next().unwrap_or_default();
            assert!(keys.iter().any(|key| key.path == path), "{path} is not described");
        }
        for key in &keys {
            let SpecKey { path, about, takes, .. } = key;
            assert!(about.ends_with('.') && !takes.form.is_empty(), "{path}: {about}");
            assert_eq!(keys.iter().filter(|other| other.path == *path).count(), 1, "{path}");
        }
    }
}

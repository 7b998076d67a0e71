//! Values of a spec as YAML that reads back as the same.

use bridge::{
    AbsentContent, AfterTool, BlockCache, Bounds, CacheKeyField, CacheMarks, CallIds, ChoiceKind, CustomForm,
    DeveloperRole, Effort, EffortField, EmptyText, EofTolerance, ErrorMeaning, ErrorRule, ErrorRules, Exclusion,
    FinishMeaning, ForcedWhileThinking, Hosted, ImageInput, ItemIds, JsonSchema, Lacking, LastMessage, LateSystem,
    LimitField, Parallel, Parameter, RefusalForm, Replay, ReplayField, RequiredWord, SchemaRule, StreamUsage,
    ThinkTags, Thinking, ThoughtDisplay, Tokenizer, ToolImages, Turns, UserField,
};

use super::layer::{Setting, Source, Sources};
use super::{ApplyPatch, Auth, SubAgents, Wire};

pub(crate) trait Yaml {
    fn yaml(&self) -> String;

    /// The same, where a text may be from a variable. Words of a vocabulary, numbers and booleans tell nothing.
    fn shown(&self, _path: &str, _from: Source<'_>) -> String {
        self.yaml()
    }

    /// The lines that it makes: one, unless it is a list whose elements have their own origins.
    fn settings(&self, path: String, from: Sources<'_>, out: &mut Vec<Setting>) {
        let value = self.shown(&path, from(&path));
        out.push((path, value));
    }

    /// What comes of it where the layers below have said something already: it takes their place.
    fn over(&self, _below: &Self) -> Self
    where
        Self: Clone,
    {
        self.clone()
    }
}

macro_rules! words {
    ($($type:ident),+ $(,)?) => {
        $(impl Yaml for $type {
            fn yaml(&self) -> String {
                // Bare, it would be no value at all.
                if self.name() == "null" { "'null'".to_owned() } else { self.name().to_owned() }
            }
        })+
    };
}

/// The words of specs: those that are written, read and described alike.
macro_rules! each_word {
    ($does:ident) => {
        $does!(
            AbsentContent,
            AfterTool,
            ApplyPatch,
            BlockCache,
            CacheKeyField,
            CacheMarks,
            CallIds,
            ChoiceKind,
            CustomForm,
            DeveloperRole,
            Effort,
            EffortField,
            EmptyText,
            EofTolerance,
            ErrorMeaning,
            Exclusion,
            FinishMeaning,
            ForcedWhileThinking,
            Hosted,
            ImageInput,
            ItemIds,
            JsonSchema,
            Lacking,
            LastMessage,
            LateSystem,
            LimitField,
            Parallel,
            Parameter,
            RefusalForm,
            Replay,
            ReplayField,
            RequiredWord,
            SchemaRule,
            StreamUsage,
            SubAgents,
            ThinkTags,
            Thinking,
            ThoughtDisplay,
            Tokenizer,
            ToolImages,
            Turns,
            UserField,
            Wire,
        );
    };
}
pub(super) use each_word;

each_word!(words);
words!(Auth);

impl Yaml for bool {
    fn yaml(&self) -> String {
        self.to_string()
    }
}

impl Yaml for usize {
    fn yaml(&self) -> String {
        self.to_string()
    }
}

impl Yaml for u64 {
    fn yaml(&self) -> String {
        self.to_string()
    }
}

impl Yaml for String {
    /// Bare when nothing in it could mean something else; else in single quotes, in which only they need care,
    /// or as a JSON string, which is YAML, too. `${` must not be taken for a variable.
    fn yaml(&self) -> String {
        let starts_well = self.starts_with(|c: char| c.is_ascii_alphabetic());
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
        let word = matches!(&*self.to_ascii_lowercase(), "true" | "false" | "null" | "yes" | "no" | "on" | "off");
        if starts_well && self.chars().all(plain) && !word {
            return self.clone();
        }
        let text = self.replace("${", "$${");
        if text.contains(wire::visible::acts) {
            return wire::visible::quoted(&text);
        }
        format!("'{}'", text.replace('\'', "''"))
    }

    fn shown(&self, path: &str, from: Source<'_>) -> String {
        from.filled(path).unwrap_or_else(|| self.yaml())
    }
}

impl Yaml for Bounds {
    fn yaml(&self) -> String {
        format!("{{min: {}, max: {}}}", self.min, self.max)
    }
}

impl<T: Yaml> Yaml for Option<T> {
    fn yaml(&self) -> String {
        self.as_ref().map_or_else(|| "null".to_owned(), Yaml::yaml)
    }

    fn shown(&self, path: &str, from: Source<'_>) -> String {
        self.as_ref().map_or_else(|| "null".to_owned(), |value| value.shown(path, from))
    }
}

impl<T: Yaml> Yaml for Vec<T> {
    fn yaml(&self) -> String {
        format!("[{}]", self.iter().map(Yaml::yaml).collect::<Vec<_>>().join(", "))
    }

    fn shown(&self, path: &str, from: Source<'_>) -> String {
        let element = |(index, value): (usize, &T)| value.shown(&format!("{path}[{index}]"), from);
        format!("[{}]", self.iter().enumerate().map(element).collect::<Vec<_>>().join(", "))
    }
}

/// A mapping.
impl<K: Yaml, V: Yaml> Yaml for Vec<(K, V)> {
    fn yaml(&self) -> String {
        let pair = |(key, value): &(K, V)| format!("{}: {}", key.yaml(), value.yaml());
        format!("{{{}}}", self.iter().map(pair).collect::<Vec<_>>().join(", "))
    }

    fn shown(&self, path: &str, from: Source<'_>) -> String {
        let pair = |(key, value): &(K, V)| {
            let key = key.yaml();
            let value = value.shown(&format!("{path}.{}", key.trim_matches('\'')), from);
            format!("{key}: {value}")
        };
        format!("{{{}}}", self.iter().map(pair).collect::<Vec<_>>().join(", "))
    }
}

impl Yaml for u16 {
    fn yaml(&self) -> String {
        self.to_string()
    }
}

impl Yaml for ErrorRules {
    fn yaml(&self) -> String {
        self.iter().cloned().collect::<Vec<_>>().yaml()
    }

    fn settings(&self, path: String, from: Sources<'_>, out: &mut Vec<Setting>) {
        for (index, rule) in self.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let value = rule.shown(&path, from(&path));
            out.push((path, value));
        }
    }

    fn over(&self, below: &Self) -> Self {
        Self::over(self, below)
    }
}

impl Yaml for ErrorRule {
    fn yaml(&self) -> String {
        self.shown("", Source::UNKNOWN)
    }

    fn shown(&self, path: &str, from: Source<'_>) -> String {
        let Self { means, status, code, words, details, names_wait, no_message, parameter, retry } = self;
        let mut members = Vec::new();
        if !status.is_empty() {
            members.push(format!("status: {}", one_or_list(status, "", Source::UNKNOWN)));
        }
        if !code.is_empty() {
            members.push(format!("code: {}", one_or_list(code, &format!("{path}.code"), from)));
        }
        if !words.is_empty() {
            members.push(format!("words: {}", one_or_list(words, &format!("{path}.words"), from)));
        }
        if !details.is_empty() {
            members.push(format!("details: {}", one_or_list(details, &format!("{path}.details"), from)));
        }
        if *names_wait {
            members.push("names_wait: true".to_owned());
        }
        if *no_message {
            members.push("no_message: true".to_owned());
        }
        members.push(format!("means: {}", means.yaml()));
        members.extend(parameter.map(|parameter| format!("parameter: {}", parameter.member())));
        members.extend(retry.map(|retry| format!("retry: {retry}")));
        format!("{{{}}}", members.join(", "))
    }
}

/// A single value may have been written without the list around it.
pub(super) fn one_or_list<T: Yaml + Clone>(values: &Vec<T>, path: &str, from: Source<'_>) -> String {
    match values.as_slice() {
        [one] if from.filled(&format!("{path}[0]")).is_none() => one.shown(path, from),
        _ => values.shown(path, from),
    }
}

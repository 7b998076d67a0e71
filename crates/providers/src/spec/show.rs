//! Values of a spec as YAML that reads back as the same.

use bridge::{
    AbsentContent, AfterTool, Bounds, CacheKeyField, CallIds, ChoiceKind, Effort, EffortField, EmptyText, Exclusion,
    ForcedWhileThinking, Hosted, ImageInput, ItemIds, Lacking, LateSystem, Parallel, Replay, ReplayField, RequiredWord,
    SchemaRule, Thinking, ToolImages, Turns, UserField,
};

pub(super) trait Yaml {
    fn yaml(&self) -> String;
}

macro_rules! words {
    ($($type:ident),+ $(,)?) => {
        $(impl Yaml for $type {
            fn yaml(&self) -> String {
                self.name().to_owned()
            }
        })+
    };
}

words!(
    AbsentContent,
    AfterTool,
    CacheKeyField,
    CallIds,
    ChoiceKind,
    Effort,
    EffortField,
    EmptyText,
    Exclusion,
    ForcedWhileThinking,
    Hosted,
    ImageInput,
    ItemIds,
    Lacking,
    LateSystem,
    Parallel,
    Replay,
    ReplayField,
    RequiredWord,
    SchemaRule,
    Thinking,
    ToolImages,
    Turns,
    UserField,
);

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

impl Yaml for String {
    /// In single quotes, in which only they need care; `${` must not be taken for a variable.
    fn yaml(&self) -> String {
        format!("'{}'", self.replace('\'', "''").replace("${", "$${"))
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
}

impl<T: Yaml> Yaml for Vec<T> {
    fn yaml(&self) -> String {
        format!("[{}]", self.iter().map(Yaml::yaml).collect::<Vec<_>>().join(", "))
    }
}

/// A mapping.
impl<T: Yaml> Yaml for Vec<(T, String)> {
    fn yaml(&self) -> String {
        let pair = |(key, value): &(T, String)| format!("{}: {}", key.yaml(), value.yaml());
        format!("{{{}}}", self.iter().map(pair).collect::<Vec<_>>().join(", "))
    }
}

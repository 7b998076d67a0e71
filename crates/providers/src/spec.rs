//! What a provider spec can say: a closed vocabulary over endpoint, auth and dialect.
//!
//! A spec says only what differs from the one it extends. Nothing here knows a vendor: names, addresses and
//! quirks are in `specs/*.yaml`.

mod answer;
mod request;
mod show;

use bridge::{DeveloperRole, Dialect, JsonSchema, LimitField, Parameter, StreamUsage};

use crate::yaml::{Field, Section};
use answer::Answer;
use request::Request;

/// A spec with everything that it extends filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// The built-in spec's name, or [`crate::INLINE`].
    pub spec_name: String,
    pub wire: Wire,
    pub base_url: Option<String>,
    pub auth: Auth,
    /// The environment variable that usually holds its key.
    pub key_env: Option<String>,
    pub default_model: Option<String>,
    /// What the list of models shows.
    pub models: Vec<String>,
    pub dialect: Dialect,
}

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// A Chat Completions server.
    Chat,
    /// A server that speaks the Responses API itself.
    Responses,
    /// The demo model inside this binary.
    Demo,
}

impl Wire {
    pub const ALL: &'static [Self] = &[Self::Chat, Self::Responses, Self::Demo];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Demo => "demo",
        }
    }
}

/// How the key is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// `Authorization: Bearer KEY`.
    Bearer,
    /// `api-key: KEY`.
    ApiKeyHeader,
    /// Not at all.
    None,
}

impl Auth {
    pub const ALL: &'static [Self] = &[Self::Bearer, Self::ApiKeyHeader, Self::None];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Bearer => "bearer",
            Self::ApiKeyHeader => "api-key-header",
            Self::None => "none",
        }
    }
}

/// One spec as written.
#[derive(Debug, Default)]
pub(crate) struct Spec {
    pub(crate) extends: Option<String>,
    wire: Option<Wire>,
    base_url: Option<String>,
    auth: Option<Auth>,
    key_env: Option<String>,
    default_model: Option<String>,
    models: Option<Vec<String>>,
    limit_field: Option<LimitField>,
    developer_role: Option<DeveloperRole>,
    stream_usage: Option<StreamUsage>,
    json_schema: Option<JsonSchema>,
    drop: Option<Vec<Parameter>>,
    family: Option<String>,
    request: Request,
    answer: Answer,
}

impl Spec {
    pub(crate) fn read(mut section: Section<'_>) -> Self {
        let mut endpoint = section.section("endpoint");
        let base_url = endpoint.read("base_url", Field::text);
        endpoint.finish();
        let spec = Self {
            extends: section.read("extends", Field::text),
            wire: section.read("wire", |field| field.choice(Wire::ALL, Wire::name)),
            base_url,
            auth: section.read("auth", |field| field.choice(Auth::ALL, Auth::name)),
            key_env: section.read("key_env", Field::text),
            default_model: section.read("default_model", Field::text),
            models: section.read("models", Field::texts),
            limit_field: section.read("limit_field", |field| field.choice(LimitField::ALL, LimitField::name)),
            developer_role: section
                .read("developer_role", |field| field.choice(DeveloperRole::ALL, DeveloperRole::name)),
            stream_usage: section.read("stream_usage", |field| field.choice(StreamUsage::ALL, StreamUsage::name)),
            json_schema: section.read("json_schema", |field| field.choice(JsonSchema::ALL, JsonSchema::name)),
            drop: section.read("drop", parameters),
            family: section.read("family", Field::text),
            request: Request::read(section.section("request")),
            answer: Answer::read(section.section("answer")),
        };
        section.finish();
        spec
    }

    /// Lays this spec over what it extends: what it says replaces, the rest stays.
    pub(crate) fn apply(self, to: &mut Provider) {
        let Self {
            extends: _,
            wire,
            base_url,
            auth,
            key_env,
            default_model,
            models,
            limit_field,
            developer_role,
            stream_usage,
            json_schema,
            drop,
            family,
            request,
            answer,
        } = self;
        replace(&mut to.wire, wire);
        replace(&mut to.auth, auth);
        replace(&mut to.models, models);
        // A new address must not get the key that is meant for the old one.
        to.key_env = if base_url.is_some() { key_env } else { key_env.or(to.key_env.take()) };
        to.base_url = base_url.or(to.base_url.take());
        to.default_model = default_model.or(to.default_model.take());
        replace(&mut to.dialect.limit_field, limit_field);
        replace(&mut to.dialect.developer_role, developer_role);
        replace(&mut to.dialect.stream_usage, stream_usage);
        replace(&mut to.dialect.json_schema, json_schema);
        replace(&mut to.dialect.drop, drop);
        replace(&mut to.dialect.family, family);
        request.apply(&mut to.dialect.request);
        answer.apply(&mut to.dialect.answer);
    }
}

impl Provider {
    /// The rules for requests as the lines of a spec's `request` section.
    pub fn request_section(&self) -> Vec<String> {
        request::print(&self.dialect.request)
    }

    /// How its answers read, as the lines of a spec's `answer` section.
    pub fn answer_section(&self) -> Vec<String> {
        answer::print(&self.dialect.answer)
    }

    /// What a spec starts from before the root spec has spoken.
    pub(crate) fn bare(spec_name: &str) -> Self {
        Self {
            spec_name: spec_name.to_owned(),
            wire: Wire::Chat,
            base_url: None,
            auth: Auth::Bearer,
            key_env: None,
            default_model: None,
            models: Vec::new(),
            dialect: Dialect::default(),
        }
    }
}

fn parameters(field: &Field<'_>) -> Option<Vec<Parameter>> {
    Some(field.list()?.iter().filter_map(|element| element.choice(Parameter::ALL, Parameter::name)).collect())
}

fn replace<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

//! What can be said of a provider as a whole and of single models of it.

use bridge::{DeveloperRole, Dialect, JsonSchema, LimitField, Parameter, StreamUsage, Tokenizer};

use super::answer::Answer;
use super::catalog::{Catalog, tokens};
use super::layer::{Setting, Sources, layer, word};
use super::request::Request;
use super::values::Yaml;
use super::{ModelSpec, Wire};
use crate::yaml::{Field, Section};

layer!(Basics over Dialect {
    /// Whose reasoning can be given back to whom; empty: `chat`.
    family: String = Field::string,
    /// The member that carries `max_output_tokens`.
    limit_field: LimitField = word!(LimitField),
    /// The role under which `developer` messages and `instructions` are sent.
    developer_role: DeveloperRole = word!(DeveloperRole),
    /// Whether the usage of a stream has to be asked for.
    stream_usage: StreamUsage = word!(StreamUsage),
    /// How an answer in a JSON schema is asked for.
    json_schema: JsonSchema = word!(JsonSchema),
    /// How many tokens an answer may have; a larger `max_output_tokens` is cut, with a note.
    max_output: Option<u64> = |field| tokens(field).map(Some),
    /// What tokens are counted with.
    tokenizer: Tokenizer = word!(Tokenizer),
    /// Parameters that the provider refuses: each is left out with a note.
    drop: Vec<Parameter> = word!([Parameter]),
});

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Terms {
    pub(super) wire: Option<Wire>,
    context_window: Option<u64>,
    catalog: Catalog,
    basics: Basics,
    request: Request,
    answer: Answer,
}

impl Terms {
    pub(super) fn pick(section: &mut Section<'_>) -> Self {
        Self {
            wire: section.read("wire", word!(Wire)),
            context_window: section.read("context_window", tokens),
            catalog: {
                let mut section = section.section("catalog");
                let catalog = Catalog::pick(&mut section);
                section.finish();
                catalog
            },
            basics: Basics::pick(section),
            request: Request::read(section.section("request")),
            answer: {
                let mut section = section.section("answer");
                let answer = Answer::pick(&mut section);
                section.finish();
                answer
            },
        }
    }

    pub(super) fn apply(&self, to: &mut ModelSpec) {
        let Self { wire, context_window, catalog, basics, request, answer } = self;
        to.wire = wire.unwrap_or(to.wire);
        to.context_window = context_window.or(to.context_window);
        catalog.apply(&mut to.catalog);
        basics.apply(&mut to.dialect);
        request.apply(&mut to.dialect.request);
        answer.apply(&mut to.dialect.answer);
    }

    pub(super) fn whole(of: &ModelSpec) -> Self {
        let ModelSpec { wire, context_window, catalog, dialect } = of;
        Self {
            wire: Some(*wire),
            context_window: *context_window,
            catalog: Catalog::whole(catalog),
            basics: Basics::whole(dialect),
            request: Request::whole(&dialect.request),
            answer: Answer::whole(&dialect.answer),
        }
    }

    pub(super) fn settings(&self, from: Sources<'_>, out: &mut Vec<Setting>) {
        let Self { wire, context_window, catalog, basics, request, answer } = self;
        out.extend(wire.map(|wire| ("wire".to_owned(), wire.yaml())));
        out.extend(context_window.map(|tokens| ("context_window".to_owned(), tokens.yaml())));
        catalog.settings("catalog.", from, out);
        basics.settings("", from, out);
        request.settings(from, out);
        answer.settings("answer.", from, out);
    }
}

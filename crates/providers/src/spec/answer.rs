//! The `answer` section of a spec: how the far side's answers read. The keys are the dialect's own names.

use bridge::{AnswerDialect, EofTolerance, ErrorMeaning, FinishMeaning, RefusalForm, ThinkTags};

use super::layer::{layer, word};
use crate::yaml::{Field, Section};

layer!(Answer over AnswerDialect {
    think_tags: ThinkTags = word!(ThinkTags),
    refusal: RefusalForm = word!(RefusalForm),
    eof: EofTolerance = word!(EofTolerance),
    fenced_json: bool = Field::boolean,
    finish: Vec<(String, FinishMeaning)> = reasons,
    // Compared with messages in lower case.
    overflow: Vec<String> = |field| Some(field.texts()?.iter().map(|text| text.to_lowercase()).collect()),
    errors: Vec<(String, ErrorMeaning)> = meanings,
});

/// `{REASON: MEANING}`.
fn reasons(field: &Field<'_>) -> Option<Vec<(String, FinishMeaning)>> {
    let meaning =
        |(reason, field): (String, Field<'_>)| Some((reason, field.choice(FinishMeaning::ALL, FinishMeaning::name)?));
    Some(field.entries()?.into_iter().filter_map(meaning).collect())
}

/// `{WORDS: MEANING}`; compared with messages in lower case.
fn meanings(field: &Field<'_>) -> Option<Vec<(String, ErrorMeaning)>> {
    let meaning = |(words, field): (String, Field<'_>)| {
        Some((words.to_lowercase(), field.choice(ErrorMeaning::ALL, ErrorMeaning::name)?))
    };
    Some(field.entries()?.into_iter().filter_map(meaning).collect())
}

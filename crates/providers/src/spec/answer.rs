//! The `answer` section of a spec: how a provider's answers read. The keys are the dialect's own names.

use bridge::{AnswerDialect, EofTolerance, ErrorMeaning, ErrorRule, ErrorRules, FinishMeaning, RefusalForm, ThinkTags};

use super::layer::{layer, word};
use crate::yaml::{Field, Section};

layer!(Answer over AnswerDialect {
    think_tags: ThinkTags = word!(ThinkTags),
    refusal: RefusalForm = word!(RefusalForm),
    eof: EofTolerance = word!(EofTolerance),
    fenced_json: bool = Field::boolean,
    finish: Vec<(String, FinishMeaning)> = reasons,
    overflow: Vec<String> = |field| Some(folded(&field.texts()?)),
    wait: Vec<String> = |field| Some(folded(&field.texts()?)),
    // Added to what the spec below says, and the last to be shown: see `show`.
    errors: ErrorRules = rules,
});

/// As messages are compared.
fn folded(words: &[String]) -> Vec<String> {
    words.iter().map(|words| words.to_lowercase()).collect()
}

/// `{REASON: MEANING}`.
fn reasons(field: &Field<'_>) -> Option<Vec<(String, FinishMeaning)>> {
    let meaning =
        |(reason, field): (String, Field<'_>)| Some((reason, field.choice(FinishMeaning::ALL, FinishMeaning::name)?));
    Some(field.entries()?.into_iter().filter_map(meaning).collect())
}

/// A list of rules; or `{WORDS: MEANING}`, short for rules that know errors by their words.
fn rules(field: &Field<'_>) -> Option<ErrorRules> {
    if !field.is_mapping() {
        return Some(field.list()?.iter().filter_map(rule).collect());
    }
    let rule = |(words, field): (String, Field<'_>)| {
        let means = field.choice(ErrorMeaning::ALL, ErrorMeaning::name)?;
        Some(ErrorRule { words: vec![words.to_lowercase()], ..ErrorRule::new(means) })
    };
    Some(field.entries()?.into_iter().filter_map(rule).collect())
}

/// `{code: CODE, status: STATUS, words: WORDS, no_message: true, means: MEANING, retry: false}`.
fn rule(field: &Field<'_>) -> Option<ErrorRule> {
    let mut section = field.clone().section()?;
    let status = section.read("status", |field| several(field, |field| field.integer(100..=599))).unwrap_or_default();
    let code = section.read("code", |field| several(field, Field::text)).unwrap_or_default();
    let words = section.read("words", |field| several(field, Field::text)).unwrap_or_default();
    let no_message = section.read("no_message", Field::boolean).unwrap_or_default();
    let means = section.field("means");
    let retry = section.read("retry", Field::boolean);
    let has_condition = !status.is_empty() || !code.is_empty() || !words.is_empty() || no_message;
    if !has_condition || means.is_none() {
        let help = "such as `{code: 1113, means: quota}`".to_owned();
        let message = "a rule for errors needs `means`, and at least one of `status`, `code`, `words`, `no_message`";
        section.problem(message, Some(help));
    }
    section.finish();
    let means = means?.choice(ErrorMeaning::ALL, ErrorMeaning::name)?;
    let status = status.into_iter().filter_map(|status| u16::try_from(status).ok()).collect();
    let rule = ErrorRule { means, status, code, words: folded(&words), no_message, retry };
    has_condition.then_some(rule)
}

/// One value, or a list of them.
fn several<'r, T>(field: &Field<'r>, read: impl Fn(&Field<'r>) -> Option<T>) -> Option<Vec<T>> {
    if field.is_list() { Some(field.list()?.iter().filter_map(read).collect()) } else { Some(vec![read(field)?]) }
}

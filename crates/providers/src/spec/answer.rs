//! The `answer` section of a spec: how a provider's answers read. The keys are the dialect's own names.

use bridge::{
    AnswerDialect, EofTolerance, ErrorMeaning, ErrorRule, ErrorRules, FinishMeaning, RefusalForm, ThinkTags,
    Unsupported,
};

use super::layer::{layer, word};
use crate::yaml::{Field, Section};

layer!(Answer over AnswerDialect {
    /// Whether reasoning is in the text, between `<think>` and `</think>`.
    think_tags: ThinkTags = word!(ThinkTags),
    /// What becomes of a refusal.
    refusal: RefusalForm = word!(RefusalForm),
    /// Whether a body that just ends, without a finish reason or `[DONE]`, may be a whole answer.
    eof: EofTolerance = word!(EofTolerance),
    /// Whether JSON comes in a code fence even where it was asked for without one.
    fenced_json: bool = Field::boolean,
    /// Finish reasons beside the usual ones, or with another meaning.
    finish: Vec<(String, FinishMeaning)> = reasons,
    /// Words in an error message that say that the prompt did not fit, beside the usual ones.
    overflow: Vec<String> = |field| Some(folded(&field.texts()?)),
    /// What comes before the time to wait in an error message.
    wait: Vec<String> = |field| Some(folded(&field.texts()?)),
    // Added to what the spec below says, and the last to be shown: see `show`.
    /// What errors mean, by status, code or words; added to what the spec below says. `parameter` is for errors that mean
    /// `unsupported` or `unsupported_value` and never name what that is: one of the words of `drop`, or of the additions of
    /// `wire: messages` (`thinking`, `betas`, `block_binding`, `eager_input_streaming`), or what promises schemas (`strict` of
    /// tools, `output_config.format`, and `schemas`, which is the first of both that the request has). `details`: words in its
    /// `details`; `names_wait`: it names a wait, of at most some minutes.
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

/// `{code: CODE, status: STATUS, words: WORDS, details: WORDS, names_wait: true, no_message: true, means: MEANING,
/// parameter: NAME, retry: false}`.
fn rule(field: &Field<'_>) -> Option<ErrorRule> {
    let mut section = field.clone().section()?;
    let status = section.read("status", |field| several(field, |field| field.integer(100..=599))).unwrap_or_default();
    let code = section.read("code", |field| several(field, Field::text)).unwrap_or_default();
    let words = section.read("words", |field| several(field, Field::text)).unwrap_or_default();
    let details = section.read("details", |field| several(field, Field::text)).unwrap_or_default();
    let names_wait = section.read("names_wait", Field::boolean).unwrap_or_default();
    let no_message = section.read("no_message", Field::boolean).unwrap_or_default();
    let means = section.field("means");
    let (parameter, retry) = (section.field("parameter"), section.read("retry", Field::boolean));
    let has_texts = !code.is_empty() || !words.is_empty() || !details.is_empty();
    let has_condition = !status.is_empty() || has_texts || names_wait || no_message;
    if !has_condition || means.is_none() {
        let help = "such as `{code: 1113, means: quota}`".to_owned();
        let message = "a rule for errors needs `means`, and at least one of `status`, `code`, `words`, `details`, `names_wait`, \
                       `no_message`";
        section.problem(message, Some(help));
    }
    section.finish();
    let means = means?.choice(ErrorMeaning::ALL, ErrorMeaning::name)?;
    let status = status.into_iter().filter_map(|status| u16::try_from(status).ok()).collect();
    let parameter = match parameter {
        None => None,
        Some(field) => Some(named(&field, means)?),
    };
    let (words, details) = (folded(&words), folded(&details));
    let rule = ErrorRule { means, status, code, words, details, names_wait, no_message, parameter, retry };
    has_condition.then_some(rule)
}

/// What an error is about that never says so.
fn named(field: &Field<'_>, means: ErrorMeaning) -> Option<Unsupported> {
    if !means.is_of_a_parameter() {
        field.problem_of_key("only what means `unsupported` or `unsupported_value` is about a parameter", None);
        return None;
    }
    field.choice(&Unsupported::nameable().collect::<Vec<_>>(), Unsupported::member)
}

/// One value, or a list of them.
fn several<'r, T>(field: &Field<'r>, read: impl Fn(&Field<'r>) -> Option<T>) -> Option<Vec<T>> {
    if field.is_list() { Some(field.list()?.iter().filter_map(read).collect()) } else { Some(vec![read(field)?]) }
}

//! The `answer` section of a spec: how the far side's answers read. The keys are the dialect's own names.

use bridge::{AnswerDialect, EofTolerance, ErrorMeaning, FinishMeaning, RefusalForm, ThinkTags};

use crate::yaml::{Field, Section};

/// What one spec says; what it does not say stays.
#[derive(Debug, Default)]
pub(super) struct Answer {
    think_tags: Option<ThinkTags>,
    refusal: Option<RefusalForm>,
    eof: Option<EofTolerance>,
    fenced_json: Option<bool>,
    finish: Option<Vec<(String, FinishMeaning)>>,
    overflow: Option<Vec<String>>,
    errors: Option<Vec<(String, ErrorMeaning)>>,
}

impl Answer {
    pub(super) fn read(mut section: Section<'_>) -> Self {
        let answer = Self {
            think_tags: section.read("think_tags", |field| field.choice(ThinkTags::ALL, ThinkTags::name)),
            refusal: section.read("refusal", |field| field.choice(RefusalForm::ALL, RefusalForm::name)),
            eof: section.read("eof", |field| field.choice(EofTolerance::ALL, EofTolerance::name)),
            fenced_json: section.read("fenced_json", Field::boolean),
            finish: section.read("finish", reasons),
            overflow: section.read("overflow", Field::texts),
            errors: section.read("errors", meanings),
        };
        section.finish();
        answer
    }

    pub(super) fn apply(self, to: &mut AnswerDialect) {
        let Self { think_tags, refusal, eof, fenced_json, finish, overflow, errors } = self;
        super::replace(&mut to.think_tags, think_tags);
        super::replace(&mut to.refusal, refusal);
        super::replace(&mut to.eof, eof);
        super::replace(&mut to.fenced_json, fenced_json);
        super::replace(&mut to.finish, finish);
        // Compared with messages in lower case.
        super::replace(&mut to.overflow, overflow.map(|words| words.iter().map(|text| text.to_lowercase()).collect()));
        super::replace(&mut to.errors, errors);
    }
}

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

/// What differs from the defaults, as the lines of the section; none where nothing does.
pub(super) fn print(answer: &AnswerDialect) -> Vec<String> {
    let (usual, mut lines) = (AnswerDialect::default(), vec!["answer:".to_owned()]);
    let mut line = |differs: bool, key: &str, value: String| {
        if differs {
            lines.push(format!("  {key}: {value}"));
        }
    };
    line(answer.think_tags != usual.think_tags, "think_tags", answer.think_tags.name().to_owned());
    line(answer.refusal != usual.refusal, "refusal", answer.refusal.name().to_owned());
    line(answer.eof != usual.eof, "eof", answer.eof.name().to_owned());
    line(answer.fenced_json != usual.fenced_json, "fenced_json", answer.fenced_json.to_string());
    let reasons: Vec<String> =
        answer.finish.iter().map(|(reason, means)| format!("{reason:?}: {}", means.name())).collect();
    line(!reasons.is_empty(), "finish", format!("{{{}}}", reasons.join(", ")));
    let words: Vec<String> = answer.overflow.iter().map(|text| format!("{text:?}")).collect();
    line(!words.is_empty(), "overflow", format!("[{}]", words.join(", ")));
    let errors: Vec<String> =
        answer.errors.iter().map(|(words, means)| format!("{words:?}: {}", means.name())).collect();
    line(!errors.is_empty(), "errors", format!("{{{}}}", errors.join(", ")));
    if lines.len() == 1 { Vec::new() } else { lines }
}

#[cfg(test)]
mod tests {
    use crate::yaml::{Document, Reader};
    use crate::{Library, resolve_inline};

    fn resolve(answer: &str) -> Result<bridge::AnswerDialect, Vec<String>> {
        let text = format!("spec:\n  extends: openai-compatible\n  answer: {answer}\n");
        let document = Document::parse("x.yaml", &text).unwrap();
        let reader = Reader::new(&document, &|_| None);
        let mut root = reader.root();
        let provider = root.read("spec", |field| resolve_inline(Library::BUILTIN, field, &|_| None));
        root.finish();
        let problems: Vec<String> = reader.finish().iter().map(ToString::to_string).collect();
        if problems.is_empty() { Ok(provider.unwrap().dialect.answer) } else { Err(problems) }
    }

    #[test]
    fn a_spec_can_say_how_answers_read() {
        let said = "{think_tags: leading, refusal: text, eof: any, fenced_json: true, finish: {\"done\": complete}, overflow: [Too Big], errors: {The cup is full: overloaded}}";
        let answer = resolve(said).unwrap();
        assert_eq!(
            super::print(&answer),
            [
                "answer:",
                "  think_tags: leading",
                "  refusal: text",
                "  eof: any",
                "  fenced_json: true",
                "  finish: {\"done\": complete}",
                "  overflow: [\"too big\"]",
                "  errors: {\"the cup is full\": overloaded}",
            ]
        );
        let printed = format!(
            "{{{}}}",
            super::print(&answer).iter().skip(1).map(|line| line.trim()).collect::<Vec<_>>().join(", ")
        );
        assert_eq!(resolve(&printed), Ok(answer), "what is printed reads back");
    }

    #[test]
    fn mistakes_have_a_place() {
        let problems = resolve("{think_tag: leading, eof: maybe, finish: {x: perhaps}}").unwrap_err();
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(problems.iter().any(|problem| problem.contains("think_tags")), "{problems:?}");
    }
}

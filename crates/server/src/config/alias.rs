//! `models.aliases`: a name for one target, for several in order, or for several by weight.

use providers::yaml::Field;

use super::ModelRef;
use super::provider::Providers;
use super::read::configured;

/// What a name means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    /// At least one.
    pub targets: Vec<ModelRef>,
    /// The share of each in the requests; None: the first gets all, the others are used when it fails.
    pub weights: Option<Vec<u32>>,
}

impl Alias {
    /// The targets as they should be tried. `draw` chooses the first by weight; the rest follow in order.
    pub(super) fn order(&self, draw: u64) -> Vec<&ModelRef> {
        let mut order: Vec<&ModelRef> = self.targets.iter().collect();
        if let Some(weights) = &self.weights {
            let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
            // The upper half of the draw as a fraction of one.
            let mut point = ((draw >> 32) * total) >> 32;
            let within = |weight: &u32| {
                let weight = u64::from(*weight);
                let here = point < weight;
                point = point.saturating_sub(weight);
                here
            };
            let first = weights.iter().position(within).unwrap_or(0);
            order[..=first].rotate_right(1);
        }
        order
    }
}

pub(super) fn read(field: &Field<'_>, providers: &Providers) -> Vec<(String, Alias)> {
    let alias = |(name, field): (String, Field<'_>)| {
        if name.trim_matches('/').is_empty() {
            field.problem("an alias must not be empty", None);
            return None;
        }
        let alias = if field.is_mapping() {
            weighted(field, providers)?
        } else if field.is_list() {
            let list = field.list()?;
            if list.is_empty() {
                field.problem("expected at least one provider/model", None);
            }
            Alias { targets: list.iter().filter_map(|field| target(field, providers)).collect(), weights: None }
        } else {
            Alias { targets: vec![target(&field, providers)?], weights: None }
        };
        (!alias.targets.is_empty()).then_some((name, alias))
    };
    field.entries().unwrap_or_default().into_iter().filter_map(alias).collect()
}

/// `{targets: [{model: a/x, weight: 3}, …]}`.
fn weighted(field: Field<'_>, providers: &Providers) -> Option<Alias> {
    let mut section = field.section()?;
    let list = section.field("targets");
    if list.is_none() {
        section.problem("needs `targets`", None);
    }
    section.finish();
    let list = list?;
    let entry = |field: Field<'_>| {
        let mut section = field.section()?;
        let model = section.field("model");
        if model.is_none() {
            section.problem("needs a `model`", None);
        }
        let weight = section.read("weight", |field| field.integer(0..=1_000_000)).unwrap_or(1);
        section.finish();
        Some((target(&model?, providers)?, u32::try_from(weight).unwrap_or(1)))
    };
    let (targets, weights): (Vec<_>, Vec<_>) = list.list()?.into_iter().filter_map(entry).unzip();
    if weights.iter().all(|weight| *weight == 0) {
        list.problem("some target needs a weight above 0", None);
    }
    Some(Alias { targets, weights: Some(weights) })
}

fn target(field: &Field<'_>, providers: &Providers) -> Option<ModelRef> {
    let text = field.text()?;
    let Some(target) = ModelRef::parse(&text) else {
        field.problem("value must be provider/model", None);
        return None;
    };
    if !providers.names.contains(&target.provider) {
        // What a variable holds is not repeated.
        let said = match field.found() {
            written if written.contains("${") => format!("in {written}"),
            _ => format!("`{}`", target.provider),
        };
        field.problem(format!("there is no provider {said}"), Some(configured(providers)));
    }
    Some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(name: &str) -> ModelRef {
        ModelRef { provider: "p".to_owned(), model: name.to_owned() }
    }

    fn first(alias: &Alias, draw: u64) -> String {
        alias.order(draw).iter().map(|target| target.model.as_str()).collect()
    }

    #[test]
    fn lists_keep_their_order_and_weights_choose_the_first() {
        let targets = vec![model("a"), model("b"), model("c")];
        let ordered = Alias { targets: targets.clone(), weights: None };
        assert_eq!((first(&ordered, 0), first(&ordered, u64::MAX)), ("abc".to_owned(), "abc".to_owned()));
        let weighted = Alias { targets, weights: Some(vec![3, 1, 0]) };
        let quarter = 1 << 62;
        let drawn =
            [0, quarter, 2 * quarter, 3 * quarter - 1, 3 * quarter, u64::MAX].map(|draw| first(&weighted, draw));
        assert_eq!(drawn, ["abc", "abc", "abc", "abc", "bac", "bac"]);
    }
}

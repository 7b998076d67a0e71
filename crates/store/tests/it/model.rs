//! Random trees of turns, with forks, resends, deletions and sweeps, beside a model that is too simple to be wrong:
//! each response keeps its whole history.

use std::collections::BTreeMap;

use store::{Error, NewTurn, Parent, Store};

use crate::chance::Chance;
use crate::make::{after, history, tenant, turn};

#[derive(Default)]
struct Model {
    /// By id: the whole history as names, and the responses that it was made of.
    turns: BTreeMap<String, (Vec<String>, Vec<String>)>,
    live: Vec<String>,
    deleted: Vec<String>,
}

impl Model {
    fn expected(&self, id: &str) -> Option<String> {
        let (items, chain) = &self.turns[id];
        (!chain.iter().any(|id| self.deleted.contains(id))).then(|| items.join(" "))
    }
}

pub(crate) async fn random_trees(store: &Store, seed: u64, turns: usize) {
    let name = format!("tree-{seed}");
    let (t, mut chance, mut model) = (tenant(store, &name), Chance::new(seed), Model::default());
    for n in 0..turns {
        let id = format!("r{n}");
        let (input, output) = (words(&mut chance, "u", 3), words(&mut chance, &format!("a{n}_"), 3));
        let (mut new, mut items, mut chain) = (turn(&id, "", &output.join(" ")), Vec::new(), vec![id.clone()]);
        match chance.below(10) {
            // Continue a recent one, or any.
            kind @ 0..7 if !model.live.is_empty() => {
                let back = if kind < 5 { 3 } else { model.live.len() };
                let parent = model.live[model.live.len() - 1 - chance.below(back.min(model.live.len()))].clone();
                new = after(&parent, NewTurn { input: crate::make::items(&input.join(" ")), ..new });
                let (before, ancestors) = &model.turns[&parent];
                items.extend(before.iter().cloned());
                chain.extend(ancestors.iter().cloned());
            }
            // Resend everything that another one had, and add to it.
            7 | 8 if !model.live.is_empty() => {
                let like = &model.live[chance.below(model.live.len())];
                items.extend(model.turns[like].0.iter().cloned());
                let all = [items.clone(), input.clone()].concat();
                new = NewTurn { input: crate::make::items(&all.join(" ")), ..new };
            }
            _ => new = NewTurn { input: crate::make::items(&input.join(" ")), ..new },
        }
        items.extend(input);
        items.extend(output);
        let broken = matches!(&new.parent, Parent::Response(parent) if model.expected(parent).is_none());
        t.put(new).await.unwrap();
        model.turns.insert(id.clone(), (items, chain));
        model.live.push(id.clone());
        assert_eq!(model.expected(&id).is_none(), broken);
        check(&t, &model, &id, seed).await;
        if chance.below(12) == 0 {
            let victim = model.live.remove(chance.below(model.live.len()));
            t.delete_response(&victim).await.unwrap();
            model.deleted.push(victim);
        }
        if chance.below(4) == 0 && !model.live.is_empty() {
            let any = model.live[chance.below(model.live.len())].clone();
            check(&t, &model, &any, seed).await;
        }
    }
    for id in &model.live {
        check(&t, &model, id, seed).await;
    }
    for id in &model.deleted {
        assert!(matches!(t.response(id).await, Err(Error::NotFound)));
    }
}

fn words(chance: &mut Chance, stem: &str, most: usize) -> Vec<String> {
    (0..chance.below(most)).map(|_| format!("{stem}{}", chance.below(4))).collect()
}

async fn check(tenant: &store::Tenanted, model: &Model, id: &str, seed: u64) {
    match (history(tenant, id).await, model.expected(id)) {
        (Ok(found), Some(expected)) => assert_eq!(found, expected, "{id}, seed {seed}"),
        (Err(Error::DeletedAncestor), None) => {}
        (found, expected) => panic!("{id}, seed {seed}: {found:?} instead of {expected:?}"),
    }
}

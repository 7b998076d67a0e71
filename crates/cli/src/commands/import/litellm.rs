//! A LiteLLM proxy's configuration: deployments become providers, names of deployments aliases, fallbacks further targets.

use anyhow::{bail, ensure};
use providers::yaml::{Document, Node, Value};

use super::deployment::{self, Deployment, Provider, SHARES};
use super::notes::{Note, Notes};
use super::settings::{self, MasterKey, Settings};
use super::source::{Text, entries, get, list, text};
use super::write;

/// What it became.
pub(super) struct Imported {
    pub(super) yaml: String,
    pub(super) notes: Vec<Note>,
    /// Those it reads, and whether one is an address.
    pub(super) variables: Vec<(String, bool)>,
}

/// All that the file will say.
pub(super) struct Plan {
    /// With their names.
    pub(super) providers: Vec<(String, Provider)>,
    pub(super) default_provider: Option<String>,
    pub(super) groups: Vec<Group>,
    pub(super) deployments: Vec<(String, Deployment)>,
    pub(super) settings: Settings,
}

/// `provider/model`, with weights where they share the requests; one of no weight is asked when others fail.
type Targets = Vec<(String, Option<u64>)>;

/// A name, and who answers to it.
pub(super) struct Group {
    pub(super) name: String,
    pub(super) targets: Targets,
}

const SECTIONS: &[&str] = &["general_settings", "litellm_settings", "router_settings"];
const READ: &[&str] = &["model_list", "credential_list", "environment_variables"];

/// `odd`: what was left out before, by its line, and why.
pub(super) fn convert(document: &Document, file: &str, odd: &[(usize, String)]) -> anyhow::Result<Imported> {
    let (root, mut notes) = (&document.root, Notes::default());
    for (line, why) in odd {
        notes.add_at(*line, why.clone());
    }
    let known = |name: &str| SECTIONS.contains(&name) || READ.contains(&name);
    ensure!(
        entries(root).iter().any(|(key, _)| known(&key.name)),
        "{file} is no configuration of a LiteLLM proxy: it has no model_list"
    );
    for name in ["model_list", "credential_list"] {
        if let Some(node) = get(root, name).filter(|node| !matches!(node.value, Value::Seq(_))) {
            bail!("{file}:{}: `{name}` is not a list", node.position.line);
        }
    }
    let mut settings = Settings::default();
    for section in SECTIONS {
        if let Some(node) = get(root, section) {
            settings.read(section, node, &mut notes);
        }
    }
    // What begins with `x-` is there to be referred to.
    let is_other = |name: &str| !known(name) && !name.starts_with("x-");
    for (key, value) in entries(root).iter().filter(|(key, value)| is_other(&key.name) && !value.is_null()) {
        notes.add(value, format!("`{}`: {}", key.name, settings::advice(&key.name)));
    }
    if let Some(node) = get(root, "environment_variables") {
        let names: Vec<&str> = entries(node).iter().map(|(key, _)| key.name.as_str()).collect();
        notes.add(node, format!("`environment_variables`: set them where godex is started: {}", names.join(", ")));
    }
    let plan = plan(root, settings, &mut notes);
    let variables = variables(&plan);
    let notes = notes.finish();
    Ok(Imported { yaml: write::yaml(&plan, &notes, file), notes, variables })
}

fn plan(root: &Node, settings: Settings, notes: &mut Notes) -> Plan {
    let credential = |node: &'_ Node| -> Option<(String, Node)> {
        Some((text(node, "credential_name")?.to_owned(), get(node, "credential_values")?.clone()))
    };
    let credentials: Vec<(String, Node)> =
        get(root, "credential_list").map(list).unwrap_or_default().iter().filter_map(credential).collect();
    let credentials: Vec<(&str, &Node)> = credentials.iter().map(|(name, node)| (name.as_str(), node)).collect();
    let mut plan =
        Plan { providers: Vec::new(), default_provider: None, groups: Vec::new(), deployments: Vec::new(), settings };
    for entry in get(root, "model_list").map(list).unwrap_or_default() {
        let Some(mut deployment) = deployment::read(entry, &credentials, notes) else { continue };
        deployment.provider.times = deployment.provider.times.or(plan.settings.times);
        let name = plan.name_of(&deployment.provider);
        if deployment.model.contains('*') {
            plan.wildcard(entry, &name, &deployment, notes);
        }
        plan.deployments.push((name, deployment));
    }
    plan.by_name(notes);
    plan.group(notes);
    plan.fall_back(notes);
    plan
}

impl Plan {
    /// The section of a provider: that of the same address and key, or a new one.
    fn name_of(&mut self, provider: &Provider) -> String {
        if let Some((name, _)) = self.providers.iter().find(|(_, known)| known == provider) {
            return name.clone();
        }
        let taken = |name: &String| self.providers.iter().any(|(known, _)| known == name);
        let numbered = (2..).map(|number| format!("{}-{number}", provider.prefix));
        let names = std::iter::once(provider.prefix.clone()).chain(numbered);
        let name = names.into_iter().find(|name| !taken(name)).unwrap_or_default();
        self.providers.push((name.clone(), provider.clone()));
        name
    }

    /// All models of a provider: they need no names of their own.
    fn wildcard(&mut self, entry: &Node, name: &str, deployment: &Deployment, notes: &mut Notes) {
        let group = &deployment.group;
        if group == "*" {
            let first = self.default_provider.get_or_insert_with(|| name.to_owned());
            if first != name {
                notes
                    .add(entry, format!("`*`: names that nobody else has go to {first}; clients ask for {name}/MODEL"));
            }
        } else if *group != format!("{name}/*") {
            notes.add(entry, format!("`{group}`: clients ask for {name}/MODEL instead"));
        }
    }

    /// Of the model that is meant by its name LiteLLM would find the vendor, and ask it.
    fn by_name(&self, notes: &mut Notes) {
        for (own, deployment) in self.deployments.iter().filter(|(_, deployment)| deployment.by_name) {
            let others: Vec<String> = self
                .providers
                .iter()
                .filter(|(name, _)| name != own)
                .map(|(name, _)| format!("{name}/MODEL"))
                .collect();
            let how = if others.is_empty() {
                "nobody else is asked, until `providers` has a section for each other vendor".to_owned()
            } else {
                format!("others are asked as {}, and further vendors need a section of `providers`", others.join(", "))
            };
            let why = "LiteLLM finds out the vendor by the name that a client says (`claude-…`, `groq/…`)";
            let note =
                format!("`{}`: {why}; here every name that is nothing else goes to {own}: {how}", deployment.group);
            notes.add_at(deployment.line, note);
        }
    }

    /// Deployments of one name.
    fn group(&mut self, notes: &mut Notes) {
        let mut names: Vec<String> = Vec::new();
        for (_, deployment) in self.deployments.iter().filter(|(_, deployment)| !deployment.model.contains('*')) {
            if !names.contains(&deployment.group) {
                names.push(deployment.group.clone());
            }
        }
        for name in names {
            let mut own: Vec<&(String, Deployment)> = self
                .deployments
                .iter()
                .filter(|(_, deployment)| deployment.group == name && !deployment.model.contains('*'))
                .collect();
            let ordered = own.iter().any(|(_, deployment)| deployment.order.is_some());
            let order = |(_, deployment): &&(String, Deployment)| deployment.order.unwrap_or(f64::MAX);
            own.sort_by(|a, b| order(a).total_cmp(&order(b)));
            let weights = if ordered || own.len() == 1 { None } else { Some(weights(&name, &own, notes)) };
            let mut targets: Targets = Vec::new();
            for (index, (provider, deployment)) in own.iter().enumerate() {
                let target = format!("{provider}/{}", deployment.model);
                let weight = weights.as_ref().and_then(|weights| weights.get(index)).copied();
                match targets.iter_mut().find(|(known, _)| *known == target) {
                    Some((_, sum)) => *sum = sum.map(|sum| sum + weight.unwrap_or_default()),
                    None => targets.push((target, weight)),
                }
            }
            self.groups.push(Group { name, targets });
        }
    }

    /// Other names. LiteLLM looks for one before it looks for deployments of that name, and what it stands for is no other
    /// name again.
    fn alias(&mut self, notes: &mut Notes) {
        let own: Vec<(String, Targets)> =
            self.groups.iter().map(|group| (group.name.clone(), group.targets.clone())).collect();
        let of = |name: &str| own.iter().find(|(known, _)| known == name).map(|(_, targets)| targets.clone());
        // One for itself changes nothing.
        for (name, other, line) in
            self.settings.aliases.iter().filter(|(name, other, _)| name != other || of(other).is_none())
        {
            let named = || self.groups.iter().find(|group| group.name == *other).map(|group| group.targets.clone());
            if name.trim_matches('/').is_empty() {
                notes.add_at(*line, format!("`model_group_alias.{name}` is left out: that is no name"));
                continue;
            }
            let Some(targets) = of(other).or_else(named) else {
                notes.add_at(*line, format!("`model_group_alias.{name}` is left out: there is no `{other}`"));
                continue;
            };
            if of(name).is_some() {
                let why = "comes before the deployments of that name, as in LiteLLM: nobody asks them by it";
                notes.add_at(*line, format!("`model_group_alias.{name}` {why}"));
            }
            match self.groups.iter_mut().find(|group| group.name == *name) {
                Some(group) => group.targets = targets,
                None => self.groups.push(Group { name: name.clone(), targets }),
            }
        }
    }

    /// Who is asked when those of a name fail.
    fn fall_back(&mut self, notes: &mut Notes) {
        self.alias(notes);
        let before: Vec<(String, Targets)> =
            self.groups.iter().map(|group| (group.name.clone(), group.targets.clone())).collect();
        let of = |name: &str| before.iter().find(|(known, _)| known == name).map(|(_, targets)| targets);
        // Its own first, then those of every name.
        for all in [false, true] {
            for (name, others, line) in self.settings.fallbacks.iter().filter(|(name, ..)| (name == "*") == all) {
                if !all && of(name).is_none() {
                    notes.add_at(*line, format!("fallbacks of `{name}` are left out: there is no such name"));
                }
                for other in others.iter().filter(|other| of(other).is_none()) {
                    notes.add_at(*line, format!("a fallback to `{other}` is left out: there is no such name"));
                }
                let targets: Vec<&Targets> = others.iter().filter_map(|other| of(other)).collect();
                for group in self.groups.iter_mut().filter(|group| all || group.name == *name) {
                    for targets in &targets {
                        group.append(targets);
                    }
                }
            }
        }
    }
}

impl Group {
    /// After all others, and only when they fail.
    fn append(&mut self, targets: &[(String, Option<u64>)]) {
        let shared = self.targets.iter().any(|(_, weight)| weight.is_some());
        for (target, _) in targets {
            if !self.targets.iter().any(|(known, _)| known == target) {
                self.targets.push((target.clone(), shared.then_some(0)));
            }
        }
    }
}

/// Whole numbers in the same proportion. All are of one kind, as in LiteLLM: the first that the first deployment has. What has
/// none of that kind gets nothing there while others answer.
fn weights(name: &str, deployments: &[&(String, Deployment)], notes: &mut Notes) -> Vec<u64> {
    let first = deployments.first().map(|(_, deployment)| (deployment.shares, deployment.line)).unwrap_or_default();
    let kind = first.0.iter().position(Option::is_some);
    let Some((kind, by)) = kind.and_then(|kind| Some((kind, SHARES.get(kind)?))) else {
        let said = |(_, deployment): &&(String, Deployment)| deployment.shares.iter().any(Option::is_some);
        if deployments.iter().any(said) {
            let why = "its first deployment has neither `weight` nor `rpm` nor `tpm`, so that all get as many requests";
            notes.add_at(first.1, format!("`{name}`: {why}, as in LiteLLM"));
        }
        return vec![1; deployments.len()];
    };
    let share = |deployment: &Deployment| deployment.shares.get(kind).copied().flatten();
    let given: Vec<f64> = deployments.iter().map(|(_, deployment)| share(deployment).unwrap_or_default()).collect();
    let largest = given.iter().copied().fold(0.0, f64::max);
    if largest <= 0.0 {
        return vec![1; given.len()];
    }
    for (_, deployment) in deployments.iter().filter(|(_, deployment)| share(deployment).is_none()) {
        let why = "this one has none, and is asked only when the others fail (LiteLLM does not choose it)";
        notes.add_at(
            deployment.line,
            format!("`{name}` shares its requests by `{by}`, as its first deployment does: {why}"),
        );
    }
    let fits = given.iter().all(|weight| weight.fract() == 0.0) && largest <= 1000.0;
    let scale = if fits { 1.0 } else { 1000.0 / largest };
    let whole = |weight: &f64| if *weight > 0.0 { deployment::whole_number((weight * scale).max(1.0)) } else { 0 };
    given.iter().map(whole).collect()
}

fn variables(plan: &Plan) -> Vec<(String, bool)> {
    let mut found: Vec<(String, bool)> = Vec::new();
    let mut add = |text: &Text, is_address: bool| {
        if let Text::Variable(name) = text
            && !found.iter().any(|(known, _)| known == name)
        {
            found.push((name.clone(), is_address));
        }
    };
    for (_, provider) in &plan.providers {
        if let Some((url, _)) = &provider.base_url {
            add(url, true);
        }
        let others = provider.query.iter().chain(&provider.params).chain(&provider.headers).map(|(_, text)| text);
        provider.key.iter().chain(others).for_each(|text| add(text, false));
    }
    if let Some(MasterKey::Variable(name)) = &plan.settings.master_key {
        add(&Text::Variable(name.clone()), false);
    }
    found
}

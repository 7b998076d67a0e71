//! A probe of a scripted provider.

use std::time::Duration;

use probe::{Abort, Difference, Finding, Limits, Origin, Settings};
use providers::{DiscoveryRules, Wire};
use server::config::{ProviderConfig, Secret, ad_hoc};
use server::probe::Client;
use testkit::{Script, Upstream};

use crate::model::{self, Quirk, Twist};

pub(crate) struct Probed {
    pub(crate) result: Result<probe::Probed, Abort>,
    pub(crate) upstream: Upstream,
    pub(crate) config: ProviderConfig,
}

pub(crate) fn limits() -> Limits {
    Limits { requests: 200, tokens: 1_000_000 }
}

/// Probes a model with this quirk, against a spec at its address.
pub(crate) async fn probe(spec: &str, quirk: Quirk, twist: Twist) -> Probed {
    probe_with(spec, limits(), move |received| model::answer(received, quirk, twist)).await
}

pub(crate) async fn probe_script(script: Script) -> Probed {
    probe_with("openai-compatible", limits(), move |_| script.clone()).await
}

pub(crate) async fn probe_with(
    spec: &str,
    limits: Limits,
    answer: impl Fn(&testkit::Received) -> Script + Send + Sync + 'static,
) -> Probed {
    probe_settings(spec, |settings| Settings { limits, ..settings }, answer).await
}

/// The same with settings of one's own.
pub(crate) async fn probe_settings(
    spec: &str,
    change: impl FnOnce(Settings) -> Settings,
    answer: impl Fn(&testkit::Received) -> Script + Send + Sync + 'static,
) -> Probed {
    let upstream = Upstream::start_with(answer).await.unwrap();
    let url = format!("{}/v1", upstream.url());
    let key = Secret::new("sk-very-secret-key".to_owned());
    let config = ad_hoc(spec, Some(&url), Some(key), &|_| None).unwrap();
    let spec = config.provider.for_model("m");
    let (wire, context_window, discovery) = (spec.wire, spec.context_window, config.provider.discovery.clone());
    let settings = change(Settings { wire, context_window, discovery, ..settings(spec.dialect) });
    let each = Duration::from_secs(20);
    let mut client = Client::new(&config, 3 * each, each, |_| {}).unwrap();
    let result = probe::run(&mut client, &settings).await;
    drop(client);
    Probed { result, upstream, config }
}

/// Everything is allowed.
pub(crate) fn settings(dialect: bridge::Dialect) -> Settings {
    Settings {
        model: "m".to_owned(),
        wire: Wire::Chat,
        dialect,
        context_window: None,
        discovery: DiscoveryRules::default(),
        allow_overflow: true,
        image_url: None,
        only: Vec::new(),
        limits: limits(),
    }
}

impl Probed {
    pub(crate) fn findings(&self) -> &[Finding] {
        &self.result.as_ref().unwrap().findings
    }

    /// What is known of one feature.
    pub(crate) fn finding(&self, feature: &str) -> &Finding {
        let finding = self.findings().iter().find(|finding| finding.feature == feature);
        finding.unwrap_or_else(|| panic!("nothing about {feature}"))
    }

    /// What was observed of one feature.
    pub(crate) fn observed(&self, feature: &str) -> &str {
        self.finding(feature).observed.text()
    }

    /// Every change that the report proposes, as `path: value`.
    pub(crate) fn changes(&self) -> Vec<String> {
        let mut all = Vec::new();
        for finding in self.findings() {
            if let Difference::Spec(changes) = &finding.difference {
                all.extend(changes.iter().map(|change| format!("{}: {}", change.path, change.yaml)));
            }
        }
        all
    }

    pub(crate) fn written(&self) -> String {
        let origin = Origin::of(&self.config.provider, &self.config.base_url, None, "m");
        probe::spec(&origin, self.findings())
    }
}

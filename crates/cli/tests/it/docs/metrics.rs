//! `docs/metrics.md`.

use server::METRICS;

use super::{check, code, table};

#[test]
fn metrics_are_documented() {
    let rows = METRICS.iter().map(|row| {
        let labels: Vec<String> = row.labels.iter().map(|label| code(label)).collect();
        [code(&row.name()), row.kind.name().to_owned(), labels.join(", "), format!("{}.", row.help)]
    });
    check("docs/metrics.md", &[("metrics", table(["name", "kind", "labels", "what"], rows))]);
}

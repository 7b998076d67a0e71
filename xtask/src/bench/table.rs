//! The two tables: everything side by side, and target against reached.

use super::cases::Row;

/// What we promise: the row, and how its gateway column is judged.
const PROMISES: &[(&str, Promise)] = &[
    ("stream 200 ×32, CPU per event", Promise::TimesFloor(1.25)),
    ("sync ×64, CPU per request", Promise::TimesFloor(1.15)),
    ("input 2 MB, median time", Promise::TimesFloor(4.0)),
    ("stored ×64, CPU per request", Promise::TimesFloor(3.5)),
    ("stored ×64, throughput", Promise::OfFloor(0.2)),
    ("one core: stored, CPU per request", Promise::TimesFloor(6.0)),
    ("one core: stream, CPU per event", Promise::TimesFloor(0.4)),
    ("with a key, CPU per request", Promise::TimesFloor(1.03)),
    ("with a key, a stream, CPU per request", Promise::TimesFloor(1.03)),
    ("with traces and metrics, CPU per request", Promise::TimesFloor(1.05)),
    ("with traces and metrics, a stream, CPU per request", Promise::TimesFloor(1.05)),
    ("Messages instead of chat, CPU per request", Promise::TimesFloor(1.2)),
    ("RSS per held stream", Promise::AtMost(32.0)),
    ("RSS per idle WebSocket", Promise::AtMost(32.0)),
    ("RSS per stalled reader", Promise::AtMost(256.0)),
    ("  others' p99 beside them", Promise::AtMost(1.1)),
    ("RSS at idle", Promise::AtMost(10.0)),
    ("godex --version", Promise::AtMost(10.0)),
    ("ready to serve", Promise::AtMost(60.0)),
    // A Nagle stall shows as 40 ms.
    ("stream 5 ms, longest gap", Promise::AtMost(30.0)),
];

enum Promise {
    TimesFloor(f64),
    /// At least this part of the floor's.
    OfFloor(f64),
    AtMost(f64),
}

pub(super) fn print(rows: &[Row]) {
    println!("\n{:<52} {:>6} {:>10} {:>10} {:>10} {:>10}", "", "unit", "direct", "floor", "godex", "× floor");
    for Row { label, unit, values } in rows {
        let cells: Vec<String> = values.iter().map(|value| cell(*value)).collect();
        let ratio = cell(ratio(values));
        println!("{label:<52} {unit:>6} {:>10} {:>10} {:>10} {ratio:>10}", cells[0], cells[1], cells[2]);
    }
    println!("\n{:<52} {:>14} {:>14}", "target", "promised", "reached");
    for (label, promise) in PROMISES {
        verdict(rows, label, promise);
    }
}

fn verdict(rows: &[Row], label: &str, promise: &Promise) {
    let Some(row) = rows.iter().find(|row| row.label.starts_with(label)) else { return };
    let (limit, reached, unit) = match promise {
        Promise::TimesFloor(limit) => (format!("≤ {limit}"), ratio(&row.values), "× floor"),
        Promise::OfFloor(limit) => (format!("≥ {limit}"), ratio(&row.values), "× floor"),
        Promise::AtMost(limit) => (format!("≤ {limit}"), row.values[2], row.unit),
    };
    let keeps = |reached: f64| match promise {
        Promise::TimesFloor(limit) | Promise::AtMost(limit) => reached <= *limit,
        Promise::OfFloor(limit) => reached >= *limit,
    };
    let kept = if reached.is_some_and(keeps) { "kept" } else { "MISSED" };
    println!("{label:<52} {:>14} {:>14} {kept}", format!("{limit} {unit}"), cell(reached));
}

fn ratio(values: &[Option<f64>; 3]) -> Option<f64> {
    let (floor, godex) = (values[1]?, values[2]?);
    (floor > 0.0).then_some(godex / floor)
}

fn cell(value: Option<f64>) -> String {
    match value {
        None => "–".to_owned(),
        Some(value) if value >= 1000.0 => format!("{value:.0}"),
        Some(value) => format!("{value:.2}"),
    }
}

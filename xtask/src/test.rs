use clap::Args;
#[derive(Args)]
pub(crate) struct Arguments {
    #[arg(long)]
    full: bool,
}
pub(crate) fn run(_: &Arguments) -> anyhow::Result<()> {
    Ok(())
}

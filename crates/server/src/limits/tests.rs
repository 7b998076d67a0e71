use store::{Share, ShareWish};
#[derive(Debug, Clone)]
pub(super) struct TestBank;
impl TestBank {
    pub(super) fn take(&self, _: &[ShareWish]) -> Result<Vec<Share>, String> {
        Ok(Vec::new())
    }
    pub(super) fn hold(&self, _: &str, wanted: u64, _: u64) -> Result<u64, String> {
        Ok(wanted)
    }
}

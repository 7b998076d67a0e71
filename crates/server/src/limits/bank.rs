//! What several processes share of their limits: the database's part of it.

use std::time::Duration;

use store::{Share, ShareWish, Store, Worker};

/// A database that takes longer is as good as away.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long places are held by a process that says nothing more.
pub(super) const LEASE: Duration = Duration::from_secs(15);

/// Why the database gives no answer.
pub(super) type Away = String;

#[derive(Debug)]
pub(super) enum Bank {
    /// There is nobody to share with.
    None,
    Store(Store, Worker),
    #[cfg(test)]
    Test(super::tests::TestBank, usize),
}

impl Bank {
    pub(super) const fn is_shared(&self) -> bool {
        !matches!(self, Self::None)
    }

    pub(super) async fn take(&self, wishes: Vec<ShareWish>) -> Result<Vec<Share>, Away> {
        match self {
            Self::None => Ok(Vec::new()),
            Self::Store(store, _) => in_time(store.take_shares(wishes)).await,
            #[cfg(test)]
            Self::Test(bank, _) => bank.take(&wishes),
        }
    }

    pub(super) async fn hold(&self, subject: &str, wanted: u64, limit: u64) -> Result<u64, Away> {
        match self {
            Self::None => Ok(wanted),
            Self::Store(store, worker) => in_time(store.hold_places(worker, subject, wanted, limit, LEASE)).await,
            #[cfg(test)]
            Self::Test(bank, me) => bank.hold(*me, subject, wanted, limit),
        }
    }

    pub(super) async fn keep(&self) -> Result<(), Away> {
        match self {
            Self::Store(store, worker) => in_time(store.keep_places(worker, LEASE)).await,
            Self::None => Ok(()),
            #[cfg(test)]
            Self::Test(..) => Ok(()),
        }
    }
}

async fn in_time<T>(asked: impl Future<Output = Result<T, store::Error>>) -> Result<T, Away> {
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err("it took too long".to_owned()),
    }
}

//! Stores on a Postgres of the test's own.

use std::time::Duration;

use store::{PostgresOptions, Store};
pub(crate) use testkit::Postgres;

pub(crate) trait Opened {
    async fn store(&self) -> Store;
    async fn store_with(&self, options: &PostgresOptions) -> Store;
}

impl Opened for Postgres {
    async fn store(&self) -> Store {
        self.store_with(&PostgresOptions::default()).await
    }

    async fn store_with(&self, options: &PostgresOptions) -> Store {
        for _ in 0..200 {
            match Store::postgres(&self.url(), options).await {
                Ok(store) => return store,
                Err(store::OpenError::Postgres { .. }) => tokio::time::sleep(Duration::from_millis(50)).await,
                Err(error) => panic!("{error}"),
            }
        }
        panic!("Postgres does not come up");
    }
}

//! Jobs that share a transaction, of which one fails.

use crate::sqlite::{Database, failure};
use crate::{Encryption, Error, SqliteOptions};

/// In one transaction with others, which keep what they did.
#[tokio::test]
async fn a_job_that_fails_halfway_takes_back_its_own_work_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let (database, _) =
        Database::file(&folder.path().join("s.db"), &SqliteOptions::default(), &Encryption::default()).unwrap();
    let create = "CREATE TABLE x (y)";
    database.write(move |connection| connection.execute_batch(create).map_err(failure)).await.unwrap();
    let before = database.counters();
    let (go, gone) = std::sync::mpsc::channel::<()>();
    // The second time, nobody is there to wait for.
    let hold = database.write(move |_| Ok(gone.recv().is_ok()));
    let insert = |y: i64, fails: bool| {
        database.write(move |connection| {
            connection.execute("INSERT INTO x VALUES (?1)", [y]).map_err(failure)?;
            if fails { Err(Error::Conflict) } else { Ok(()) }
        })
    };
    let refused = database.write(|_| Err::<(), _>(Error::NotFound));
    // Polled in this order: all wait in the queue before the first one goes on.
    let release = async move { go.send(()).unwrap() };
    let (held, one, two, none, three, ()) =
        tokio::join!(hold, insert(1, false), insert(2, true), refused, insert(3, false), release);
    assert!(held.is_ok() && one.is_ok() && three.is_ok());
    assert!(matches!((two, none), (Err(Error::Conflict), Err(Error::NotFound))));
    let kept = database.read(|connection| {
        let mut select = connection.prepare("SELECT y FROM x ORDER BY y").map_err(failure)?;
        let rows = select.query_map([], |row| row.get::<_, i64>(0)).map_err(failure)?;
        rows.collect::<Result<Vec<i64>, _>>().map_err(failure)
    });
    assert_eq!(kept.await.unwrap(), [1, 3]);
    // Those up to the one that failed were run again together, and the others after them.
    let after = database.counters();
    assert_eq!((after.writes - before.writes, after.commits - before.commits), (5, 2));
}

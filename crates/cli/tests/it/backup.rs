//! `godex store backup`, `restore` and `check`: under load, back in place, and equal to what clients were told.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::Client;

use crate::cli::{godex, home};
use crate::sessions::Godex;

const CONFIG: &str =
    "session: {sqlite: {path: data/s.db}}\nmodels: {discover: off}\nadmin: {listen: 'unix:admin.sock'}\n";

/// What orders the moments of all clients and of the backups.
static MOMENT: AtomicU64 = AtomicU64::new(0);

fn now() -> u64 {
    MOMENT.fetch_add(1, Ordering::SeqCst)
}

/// A turn that was acknowledged: when it was asked for and when it was answered, its id, and all texts up to it.
struct Told {
    asked: u64,
    answered: u64,
    object: Value,
    given: Vec<String>,
}

/// One client: chains of turns, until it is told to stop.
async fn talk(url: String, name: usize, over: Arc<AtomicBool>) -> Vec<Told> {
    let (client, mut told) = (Client::new().unwrap(), Vec::<Told>::new());
    let mut given = Vec::new();
    while !over.load(Ordering::Relaxed) {
        // A new chain now and then, so that each is listed on one page.
        if told.len().is_multiple_of(20) {
            given.clear();
        }
        let words = format!("echo {name}-{}", told.len());
        let previous = told.last().filter(|_| !given.is_empty()).map_or(Value::Null, |last| last.object["id"].clone());
        let asked = now();
        let body = json!({"model": "demo", "input": &words, "previous_response_id": previous});
        let answer = client.post_json(&format!("{url}/v1/responses"), &body).await.unwrap();
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        given.push(words.clone());
        let object = answer.json();
        told.push(Told { asked, answered: now(), object, given: given.clone() });
        given.push(words.trim_start_matches("echo ").to_owned());
    }
    told
}

/// The texts of a response's whole input, oldest first.
async fn given(godex: &Godex, id: &str) -> Vec<String> {
    let (_, list) = godex.get(&format!("/v1/responses/{id}/input_items?limit=100&order=asc")).await;
    let data = list["data"].as_array().unwrap().iter();
    data.map(|item| item["content"][0]["text"].as_str().unwrap().to_owned()).collect()
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn good(home: &Path, arguments: &[&str]) -> String {
    let (code, out, err) = godex(home, arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {out} {err}");
    out
}

fn refused(home: &Path, arguments: &[&str], expected: &str) {
    let (code, out, err) = godex(home, arguments);
    assert!(code == Some(1) && err.contains(expected), "{arguments:?}: {code:?} {out} {err}");
}

/// What a backup has of each client is a beginning of its turns: at least what was acknowledged before the backup was asked
/// for, at most what was asked for before it was there.
#[expect(clippy::disallowed_methods, reason = "the test waits for it")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_under_load_is_what_was_acknowledged_at_its_moment() {
    let (dir, target) = (home(CONFIG), home(CONFIG));
    let running = Godex::logging_to(dir.path(), std::process::Stdio::null());
    let over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..6).map(|name| tokio::spawn(talk(running.url.clone(), name, Arc::clone(&over)))).collect();
    let mut moments = Vec::new();
    for number in 0..3 {
        tokio::time::sleep(Duration::from_millis(150)).await;
        let (began, home) = (now(), dir.path().to_owned());
        let file = format!("{number}.backup");
        let made = tokio::task::spawn_blocking(move || good(&home, &["store", "backup", &file])).await.unwrap();
        assert!(made.starts_with(&format!("{number}.backup: ")), "{made}");
        moments.push((began, now()));
    }
    let checked = {
        let home = dir.path().to_owned();
        tokio::task::spawn_blocking(move || good(&home, &["store", "check"])).await.unwrap()
    };
    assert!(checked.starts_with("OK: "), "{checked}");
    over.store(true, Ordering::Relaxed);
    let mut told = Vec::new();
    for client in clients {
        told.push(client.await.unwrap());
    }
    assert!(running.end(Signal::TERM).success());

    let mut sizes = Vec::new();
    for (number, (began, ended)) in moments.into_iter().enumerate() {
        let backup = dir.path().join(format!("{number}.backup"));
        assert_eq!(mode(&backup), 0o600);
        let names = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(names.into_iter().all(|name| !name.to_string_lossy().contains(".part")));
        good(dir.path(), &["store", "check", backup.to_str().unwrap()]);
        good(target.path(), &["store", "restore", backup.to_str().unwrap(), "--force"]);
        good(target.path(), &["store", "check"]);
        let restored = Godex::logging_to(target.path(), std::process::Stdio::null());
        let (mut there, mut certain) = (0, 0);
        for turns in &told {
            let mut ended_here = false;
            for turn in turns {
                let id = turn.object["id"].as_str().unwrap();
                let (status, object) = restored.get(&format!("/v1/responses/{id}")).await;
                let found = status == 200;
                assert!(found || turn.answered > began, "{id} was acknowledged before the backup {number}");
                assert!(!found || turn.asked < ended, "{id} was asked for after the backup {number}");
                assert!(!(found && ended_here), "{id} is there, and what was told before is not");
                ended_here |= !found;
                certain += usize::from(turn.answered <= began);
                if found {
                    there += 1;
                    assert_eq!(object, turn.object);
                    assert_eq!(given(&restored, id).await, turn.given);
                }
            }
        }
        assert!(certain > 0 && there >= certain, "{there} of {certain}");
        sizes.push(there);
        assert!(restored.end(Signal::TERM).success());
    }
    let all: usize = told.iter().map(Vec::len).sum();
    assert!(sizes.is_sorted() && sizes.iter().all(|size| *size < all), "{sizes:?} of {all}: there was no load");
}

/// What clients carry is opened by the key beside the database, which comes along.
#[tokio::test]
async fn a_restore_brings_the_key_of_the_seal_and_puts_what_was_there_aside() {
    for encryption in ["", ", encryption: {key: '1111111111111111111111111111111111111111111111111111111111111111'}"] {
        let config = CONFIG.replace("s.db}", &format!("s.db}}{encryption}"));
        let (from, to) = (home(&config), home(&config));
        let mut ids = BTreeMap::new();
        for (name, dir) in [("from", &from), ("to", &to)] {
            let running = Godex::logging_to(dir.path(), std::process::Stdio::null());
            let body = json!({"model": "demo", "input": format!("echo {name}")});
            let answer = running.client.post_json(&format!("{}/v1/responses", running.url), &body).await.unwrap();
            ids.insert(name, answer.json()["id"].as_str().unwrap().to_owned());
            if name == "to" {
                let backup = from.path().join("b");
                refused(dir.path(), &["store", "restore", backup.to_str().unwrap(), "--force"], "another process");
            }
            assert!(running.end(Signal::TERM).success());
            if name == "from" {
                // No server is needed.
                good(from.path(), &["store", "backup", "b"]);
                refused(from.path(), &["store", "backup", "b"], "is there already");
            }
        }
        let backup = from.path().join("b");
        let backup = backup.to_str().unwrap();
        let key = |dir: &Path| fs::read(dir.join("data/seal.key")).unwrap();
        let before = key(to.path());
        assert_ne!(key(from.path()), before);
        let text = String::from_utf8_lossy(&fs::read(backup).unwrap()).into_owned();
        assert_eq!(text.contains("seal.wrapped"), !encryption.is_empty());
        refused(to.path(), &["store", "restore", backup], "--force puts it aside");
        let out = good(to.path(), &["store", "restore", backup, "--force"]);
        assert!(out.contains("s.db.before-restore-1") && out.contains("seal.key.before-restore-1"), "{out}");
        assert_eq!(key(from.path()), key(to.path()));
        assert_eq!((mode(&to.path().join("data/seal.key")), mode(&to.path().join("data/s.db"))), (0o600, 0o600));
        let running = Godex::logging_to(to.path(), std::process::Stdio::null());
        assert_eq!(running.get(&format!("/v1/responses/{}", ids["from"])).await.0, 200);
        assert_eq!(running.get(&format!("/v1/responses/{}", ids["to"])).await.0, 404);
        assert!(running.end(Signal::TERM).success());
        // And back again.
        let aside = to.path().join("data/s.db.before-restore-1");
        good(to.path(), &["store", "restore", aside.to_str().unwrap(), "--force"]);
        assert_eq!(key(to.path()), before, "what its clients carry opens again");
        let running = Godex::logging_to(to.path(), std::process::Stdio::null());
        assert_eq!(running.get(&format!("/v1/responses/{}", ids["to"])).await.0, 200);
    }
}

#[test]
fn what_cannot_be_is_said() {
    let dir = home(CONFIG);
    fs::write(dir.path().join("junk"), "no database").unwrap();
    refused(dir.path(), &["store", "restore", "junk"], "damaged");
    refused(dir.path(), &["store", "restore", "nothing"], "cannot open the session database nothing");
    refused(dir.path(), &["store", "check", "junk"], "found");
    refused(dir.path(), &["store", "backup", "nowhere/b"], "cannot write nowhere/b.part");
    assert!(!dir.path().join("data/s.db").exists());
    for (backend, expected) in
        [("memory", "in memory only"), ("postgres, postgres: {url: 'postgres://x/y'}", "pg_dump")]
    {
        let dir = home(&format!("session: {{backend: {backend}}}\n"));
        refused(dir.path(), &["store", "backup", "b"], expected);
    }
}

/// A row that nothing leads to, and bodies that nobody can be given: said to whoever looks, of the file and of the store, and
/// to whoever asks for them; and no such file takes the place of another.
#[tokio::test]
async fn a_check_finds_what_is_broken() {
    let (dir, other) = (home(CONFIG), home(CONFIG));
    let running = Godex::logging_to(dir.path(), std::process::Stdio::null());
    let body = json!({"model": "demo", "input": "echo hello", "instructions": "Be brief."});
    let answer = running.client.post_json(&format!("{}/v1/responses", running.url), &body).await.unwrap();
    let response = format!("/v1/responses/{}", answer.json()["id"].as_str().unwrap());
    let answer = running.client.post_json(&format!("{}/v1/conversations", running.url), &json!({})).await.unwrap();
    let conversation = format!("/v1/conversations/{}", answer.json()["id"].as_str().unwrap());
    assert!(running.end(Signal::TERM).success());
    good(dir.path(), &["store", "check"]);
    let database = dir.path().join("data/s.db");
    let whole = fs::read(&database).unwrap();
    let (input, of_item) = (format!("{response}/input_items"), "item msg_");
    for (change, expected, asked) in [
        ("DELETE FROM settings", "a response is without its settings", &response),
        ("UPDATE item SET body = x'ff00'", "cannot be read", &response),
        ("UPDATE item SET body = x'00ff00ff'", of_item, &response),
        ("UPDATE item SET body = x'00ff00ff'", of_item, &input),
        ("UPDATE response SET head = x'00ff00ff'", "response resp_", &response),
        ("UPDATE settings SET body = CAST(x'00' || '{\"tools\":[' AS BLOB)", "settings ", &response),
        ("UPDATE conversation SET metadata = x'00ff'", "conversation conv_", &conversation),
    ] {
        fs::write(&database, &whole).unwrap();
        let connection = rusqlite::Connection::open(&database).unwrap();
        connection.execute_batch(change).unwrap();
        connection.close().unwrap();
        for arguments in [&["store", "check"][..], &["store", "check", "data/s.db"]] {
            let (code, out, err) = godex(dir.path(), arguments);
            assert!(code == Some(1) && out.contains(expected) && err.contains("found"), "{change}: {out} {err}");
        }
        refused(other.path(), &["store", "restore", database.to_str().unwrap()], "the backup is damaged");
        assert!(!other.path().join("data/s.db").exists() && !other.path().join("data/s.db.restoring").exists());
        let running = Godex::logging_to(dir.path(), std::process::Stdio::null());
        let (status, told) = running.get(asked).await;
        assert_eq!((status, &told["error"]["code"]), (500, &json!("storage_damaged")), "{change}: {told}");
        assert!(running.end(Signal::TERM).success());
    }
    // A copy of what is left can be made, and says so.
    let (code, _, err) = godex(dir.path(), &["store", "backup", "copy.db"]);
    assert!(code == Some(0) && err.contains("warning: 1 found that cannot be read"), "{err}");
}

/// What is encrypted is read where there is a key for it, and not called good where there is none.
#[tokio::test]
async fn an_encrypted_file_is_read_with_its_key() {
    let config = CONFIG.replace("s.db}", &format!("s.db}}, encryption: {{key: '{}'}}", "1".repeat(64)));
    let (dir, without) = (home(&config), home(CONFIG));
    let running = Godex::logging_to(dir.path(), std::process::Stdio::null());
    let body = json!({"model": "demo", "input": "echo hello"});
    running.client.post_json(&format!("{}/v1/responses", running.url), &body).await.unwrap();
    assert!(running.end(Signal::TERM).success());
    let database = dir.path().join("data/s.db");
    let path = database.to_str().unwrap();
    assert!(!good(dir.path(), &["store", "check", path]).contains("not read"));
    assert!(good(without.path(), &["store", "check", path]).contains("3 rows are encrypted and were not read"));
    let connection = rusqlite::Connection::open(&database).unwrap();
    connection.execute_batch("UPDATE response SET head = substr(head, 1, length(head) - 1)").unwrap();
    connection.close().unwrap();
    let (code, out, _) = godex(dir.path(), &["store", "check", path]);
    assert!(code == Some(1) && out.contains("response resp_"), "{out}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_says_whether_one_answers() {
    let dir = home("session: {backend: memory}\nserver: {port: 1}\n");
    refused(dir.path(), &["health"], "error: godex does not answer at http://127.0.0.1:1: Connection refused");
    let running = Godex::logging_to(dir.path(), std::process::Stdio::null());
    assert_eq!(good(dir.path(), &["health", "--url", &running.url]), "ok\n");
    assert_eq!(good(dir.path(), &["health", "--ready", "--url", &format!("{}/", running.url)]), "ready\n");
    // A web server that is no godex.
    let stranger = testkit::Upstream::start_with(testkit::forgetful).await.unwrap();
    refused(dir.path(), &["health", "--url", &stranger.url()], "is not godex");
}

#[test]
fn manual_pages_are_written() {
    let dir = home("");
    good(dir.path(), &["man", "pages"]);
    let page = fs::read_to_string(dir.path().join("pages/godex-store-backup.1")).unwrap();
    assert!(page.contains(".TH") && page.contains("also while a server uses it"), "{page}");
    assert!(dir.path().join("pages/godex.1").exists());
}

/// It is the disk of the copy that is full, and not the godex that fails.
#[tokio::test]
async fn a_copy_that_finds_no_room_is_told_of_as_such() {
    let home = home(CONFIG);
    let running = Godex::logging_to(home.path(), std::process::Stdio::null());
    // What a full disk is to a process: its files may not grow.
    let script = format!("trap '' XFSZ; ulimit -f 8; exec {} store backup copy.db", env!("CARGO_BIN_EXE_godex"));
    let mut command = std::process::Command::new("sh");
    let output = command.args(["-c", &script]).env("HOME", home.path()).current_dir(home.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot write copy.db") && !said.contains("cannot be asked"), "{said}");
    assert!(!home.path().join("copy.db").exists());
    assert!(running.end(Signal::TERM).success());
}

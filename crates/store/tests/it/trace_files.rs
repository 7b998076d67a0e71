//! What a trace file must endure, and what is not to be read in it.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use store::{
    Encryption, OpenError, Payload, Rewriting, SqliteOptions, Store, Tenant, TraceDocument, TraceFilter, TraceRekeyed,
    TraceRetention, TraceRow, TraceStore, member,
};
use tokio::time::Instant;

use crate::encryption::keys;
use crate::sqlite::files_with;
use crate::traces::{BEGIN, Sample, batched, newest, of, row, trace};

fn open(path: &Path) -> Result<TraceStore, OpenError> {
    TraceStore::sqlite(path, &Encryption::default())
}

fn with_words(tenant: &str, number: i64, words: &str) -> Sample {
    let bytes = Bytes::from(words.repeat(3));
    let document = format!(r#"{{"words":"{words}"}}"#).into_bytes();
    let payloads = vec![Payload { name: "request".into(), bytes, cut_from: None }];
    Sample { row: row(tenant, number), document, payloads }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trace_file_is_the_owners_and_one_processs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let traces = open(&path).unwrap();
    traces.add(batched([trace(row("t", 1))])).await.unwrap();
    #[cfg(unix)]
    for end in ["", "-wal", ".lock"] {
        use std::os::unix::fs::PermissionsExt;
        let file = folder.path().join(format!("trace.db{end}"));
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "{end}");
    }
    let refused = open(&path).unwrap_err().to_string();
    assert!(refused.contains("trace.db") && refused.contains("another process") && refused.contains("trace.path"));
    traces.close().await;
    let traces = open(&path).unwrap();
    assert_eq!(traces.list(of("t"), newest(9)).await.unwrap().len(), 1);
}

async fn numbers(traces: &TraceStore) -> Vec<i64> {
    traces.list(of("t"), newest(9)).await.unwrap().iter().map(|(number, _)| *number).collect()
}

/// What is written into a file without a name nobody reads: it is noticed, and a new one is begun.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_was_removed_is_begun_anew() {
    // Also where its lock stays, and where another file has its name.
    for (ends, other) in [(&["", "-wal", "-shm", ".lock"][..], false), (&["", "-wal", "-shm"], false), (&[""], true)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.db");
        let traces = open(&path).unwrap();
        let reader = traces.clone();
        traces.add(batched([trace(row("t", 1)), trace(row("t", 2))])).await.unwrap();
        for end in ends {
            std::fs::remove_file(folder.path().join(format!("trace.db{end}"))).unwrap();
        }
        if other {
            std::fs::write(&path, "").unwrap();
        }
        traces.add(batched([trace(row("t", 3))])).await.unwrap();
        traces.add(batched([trace(row("t", 4))])).await.unwrap();
        // With numbers that go on: whoever follows asks for those after the last one.
        assert_eq!(numbers(&reader).await, [4, 3]);
        assert_eq!(reader.get(3).await.unwrap().unwrap().row, row("t", 3));
        traces.close().await;
        let again = open(&path).unwrap();
        assert_eq!(again.list(of("t"), newest(9)).await.unwrap().len(), 2);
    }
}

/// Writing found damage, and said so; somebody does as told, and moves the file away.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_file_that_was_removed_is_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let at = |end: &str| folder.path().join(format!("trace.db{end}"));
    let traces = open(&path).unwrap();
    traces.add(batched((0..900).map(|n| with_words("t", n, "words")))).await.unwrap();
    traces.close().await;
    let traces = open(&path).unwrap();
    let length = usize::try_from(std::fs::metadata(&path).unwrap().len()).unwrap();
    let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(8_192)).unwrap();
    std::io::Write::write_all(&mut file, &vec![0xff; length - 8_192]).unwrap();
    for _ in 0..2 {
        traces.add(batched([trace(row("t", 1))])).await.unwrap_err();
        traces.list(of("t"), newest(9)).await.unwrap_err();
    }
    assert!(at(".suspect").exists());
    std::fs::remove_file(&path).unwrap();
    traces.add(batched([trace(row("t", 2))])).await.unwrap();
    traces.add(batched([trace(row("t", 3))])).await.unwrap();
    assert_eq!(numbers(&traces).await, [902, 901]);
    // What was suspected is gone; so is the suspicion, and nothing was put aside.
    assert!(!at(".suspect").exists() && !at(".damaged").exists());
    traces.close().await;
    let again = open(&path).unwrap();
    assert_eq!(numbers(&again).await, [902, 901]);
    assert!(!at(".damaged").exists());
}

/// It still has its name, and none of its bytes. A sweep in between does not hide that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_was_emptied_is_begun_anew() {
    let ways = [(false, false), (true, false), (false, true), (true, true)];
    for (by, (reopened, swept)) in ["", "my notes"].into_iter().flat_map(|by| ways.map(|way| (by, way))) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.db");
        let mut traces = open(&path).unwrap();
        traces.add(batched((0..40).map(|n| with_words("t", n, "words")))).await.unwrap();
        if reopened {
            traces.close().await;
            traces = open(&path).unwrap();
        }
        std::fs::write(&path, by).unwrap();
        if swept {
            assert!(!traces.prune(TraceRetention { age_micros: 0, bytes: 0 }).await.unwrap());
        }
        traces.add(batched([trace(row("t", 41))])).await.unwrap();
        traces.add(batched([trace(row("t", 42))])).await.unwrap();
        assert_eq!(numbers(&traces).await, [42, 41], "{by} {reopened} {swept}");
        assert!(folder.path().join("trace.db.damaged").exists());
        traces.close().await;
        assert_eq!(numbers(&open(&path).unwrap()).await, [42, 41], "{by} {reopened} {swept}");
    }
}

/// A new file cannot be made for a while: then nothing is kept, and it is tried again.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_cannot_be_begun_anew_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let traces = open(&path).unwrap();
    traces.add(batched([trace(row("t", 1))])).await.unwrap();
    for end in ["", "-wal", "-shm"] {
        std::fs::remove_file(folder.path().join(format!("trace.db{end}"))).unwrap();
    }
    std::fs::create_dir(&path).unwrap();
    for _ in 0..3 {
        traces.add(batched([trace(row("t", 2))])).await.unwrap_err();
    }
    std::fs::remove_dir(&path).unwrap();
    traces.add(batched([trace(row("t", 3))])).await.unwrap();
    assert_eq!(traces.list(of("t"), newest(9)).await.unwrap().len(), 1);
}

/// After a sweep neither the file nor its log keeps the room of what is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_gives_the_room_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let traces = open(&path).unwrap();
    for batch in 0..20 {
        traces.add(batched((0..100).map(|n| with_words("t", batch * 100 + n, &"words ".repeat(200))))).await.unwrap();
    }
    let room = |end: &str| std::fs::metadata(folder.path().join(format!("trace.db{end}"))).unwrap().len();
    let before = room("") + room("-wal");
    while traces.prune(TraceRetention { age_micros: i64::MAX, bytes: 3 << 20 }).await.unwrap() {}
    assert_eq!(room("-wal"), 0);
    assert!(before > 6 << 20 && room("") < 5 << 20, "{before} {}", room(""));
    assert!(!traces.list(of("t"), newest(9)).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_file_is_moved_aside_and_a_foreign_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    // Where the damage is: in the schema, everywhere else, or where only writing finds it.
    for (what, from) in [("schema", Some(100)), ("tables", Some(8_192)), ("documents", None)] {
        let traces = open(&path).unwrap();
        traces.add(batched((0..900).map(|n| with_words("t", n, "words")))).await.unwrap();
        traces.close().await;
        let connection = rusqlite::Connection::open(&path).unwrap();
        let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'godex_trace_document'";
        let root: u32 = connection.query_row(root, [], |row| row.get(0)).unwrap();
        let root = root as usize;
        drop(connection);
        let mut bytes = std::fs::read(&path).unwrap();
        let damage = from.map_or((root - 1) * 8_192..root * 8_192, |from| from..bytes.len());
        bytes[damage].fill(0xa5);
        std::fs::write(&path, &bytes).unwrap();
        let aside = folder.path().join("trace.db.damaged");
        let traces = open(&path).unwrap();
        assert_eq!(aside.exists(), from.is_some(), "{what}");
        let added = traces.add(batched([trace(row("t", 1))])).await;
        assert_eq!(added.is_ok(), from.is_some(), "{what}: {added:?}");
        traces.close().await;
        let traces = open(&path).unwrap();
        traces.add(batched([trace(row("t", 2))])).await.unwrap();
        traces.close().await;
        assert_eq!(std::fs::read(&aside).unwrap().len(), bytes.len(), "{what}");
        std::fs::remove_file(aside).unwrap();
    }
    let foreign = folder.path().join("notes.txt");
    std::fs::write(&foreign, "my notes, which are longer than a header").unwrap();
    let refused = open(&foreign).unwrap_err().to_string();
    assert!(refused.contains("no SQLite file") && refused.contains("notes.txt"), "{refused}");
    assert!(std::fs::read_to_string(&foreign).unwrap().starts_with("my notes"));
}

/// Each has its own place, as far as there are some; and who only looks leaves them all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_files_are_kept_beside_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let last_of = |name: &str| std::fs::read(folder.path().join(name)).ok().and_then(|bytes| bytes.last().copied());
    for round in 1..=7_u8 {
        let traces = open(&path).unwrap();
        traces.add(batched([trace(row("t", 1))])).await.unwrap();
        traces.close().await;
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[100..].fill(0xa5);
        *bytes.last_mut().unwrap() = round;
        std::fs::write(&path, &bytes).unwrap();
        let refused = TraceStore::look(&path, &Encryption::default()).unwrap_err().to_string();
        assert!(refused.contains("trace.db") && refused.contains("is damaged"), "{refused}");
        assert!(refused.contains("the next `godex serve` puts it aside"), "{refused}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "round {round}");
    }
    let traces = open(&path).unwrap();
    assert_eq!(traces.list(of("t"), newest(9)).await.unwrap().len(), 0);
    for (name, expected) in [
        ("trace.db.damaged", Some(1)),
        ("trace.db.damaged.2", Some(2)),
        ("trace.db.damaged.3", Some(3)),
        ("trace.db.damaged.4", Some(4)),
        ("trace.db.damaged.5", Some(7)),
        ("trace.db.damaged.6", None),
    ] {
        assert_eq!(last_of(name), expected, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_others_in_the_file_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE trace_requests (id INTEGER PRIMARY KEY, request_id TEXT); PRAGMA user_version = 7;
             INSERT INTO trace_requests VALUES (1, 'req_of_before')",
        )
        .unwrap();
    drop(connection);
    let traces = open(&path).unwrap();
    traces.add(batched((0..600).map(|n| trace(row("t", n))))).await.unwrap();
    while traces.prune(TraceRetention { age_micros: 0, bytes: 0 }).await.unwrap() {}
    traces.erase(Tenant::new("t")).await.unwrap();
    traces.close().await;
    let connection = rusqlite::Connection::open(&path).unwrap();
    let found: String = connection.query_row("SELECT request_id FROM trace_requests", [], |row| row.get(0)).unwrap();
    assert_eq!(found, "req_of_before");
    assert_eq!(connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0)).unwrap(), 7);
    // A version that we do not know yet is refused, and so is a file that was changed by hand.
    for (change, expected) in [
        ("INSERT INTO godex_trace_migration VALUES (9, x'00')", "newer version"),
        (
            "DELETE FROM godex_trace_migration WHERE number = 9; UPDATE godex_trace_migration SET checksum = x'00'",
            "by hand",
        ),
    ] {
        connection.execute_batch(change).unwrap();
        let refused = open(&path).unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_byte_of_an_erased_tenant_is_in_a_trace_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let traces = open(&path).unwrap();
    for round in 0..40 {
        let mixed = (0..20).flat_map(|n| {
            let number = round * 20 + n;
            [with_words("canary", number, "canarywords "), with_words("neighbour", number, "neighbourwords ")]
        });
        traces.add(batched(mixed)).await.unwrap();
    }
    let words = ["canary", "neighbour"];
    assert!(words.iter().all(|words| files_with(folder.path(), words) > 0));
    assert_eq!(traces.erase(Tenant::new("canary")).await.unwrap(), 800);
    assert_eq!(words.map(|words| files_with(folder.path(), words) > 0), [false, true]);
    // And stay gone, while others go on.
    traces.add(batched([with_words("neighbour", 1, "neighbourwords ")])).await.unwrap();
    traces.close().await;
    assert_eq!(words.map(|words| files_with(folder.path(), words) > 0), [false, true]);
    let traces = open(&path).unwrap();
    assert_eq!(traces.list(of("neighbour"), newest(1_000)).await.unwrap().len(), 801);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pruned_file_becomes_smaller() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let traces = open(&path).unwrap();
    let mut state = 7_u64;
    let mut noise = || {
        let letter = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'a' + (state >> 59) as u8 % 26)
        };
        (0..20_000).map(letter).collect::<String>()
    };
    for n in 0..60 {
        traces.add(batched((0..10).map(|_| with_words("t", n, &noise())))).await.unwrap();
    }
    let size = || std::fs::metadata(&path).unwrap().len();
    traces.clone().close().await;
    let before = size();
    let traces = open(&path).unwrap();
    while traces.prune(TraceRetention { age_micros: i64::MAX, bytes: before / 10 }).await.unwrap() {}
    assert!(!traces.list(of("t"), newest(9)).await.unwrap().is_empty());
    traces.close().await;
    assert!(size() < before / 2, "{} of {before}", size());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_and_bodies_are_encrypted_and_follow_the_keys() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let new = || (0..40).map(|n| with_words("t", n, "canarywords ")).collect::<Vec<_>>();
    let traces = TraceStore::sqlite(&path, &keys(&[1])).unwrap();
    traces.add(batched(new())).await.unwrap();
    traces.close().await;
    assert_eq!(files_with(folder.path(), "canarywords"), 0);
    // With other keys all is listed, and nothing is read.
    for (encryption, readable) in
        [(keys(&[1]), true), (keys(&[2, 1]), true), (keys(&[2]), false), (Encryption::default(), false)]
    {
        let traces = TraceStore::sqlite(&path, &encryption).unwrap();
        assert_eq!(traces.list(of("t"), newest(99)).await.unwrap().len(), 40);
        let found = traces.find("req_t_7".into(), None).await.unwrap().unwrap();
        assert_eq!((found.row, found.unreadable), (row("t", 7), !readable));
        assert_eq!((found.document == r#"{"words":"canarywords "}"#, found.payloads.len() == 1), (readable, readable));
        assert!(readable || found.document == "{}");
        traces.close().await;
    }
    // The keys change: twice, to clear, back, and once without the key of before.
    let rekeyed = async |encryption: &Encryption, how| {
        let traces = TraceStore::sqlite(&path, encryption).unwrap();
        let mut calls = 0;
        let done = traces.rekey(how, &mut |_| calls += 1).await.unwrap();
        assert!(calls > 0);
        assert_eq!(traces.rekey(how, &mut |_| ()).await.unwrap(), TraceRekeyed::default());
        let found = traces.find("req_t_7".into(), None).await.unwrap().unwrap();
        traces.close().await;
        (done.rewritten, done.dropped, found.unreadable)
    };
    for (encryption, how, expected, clear) in [
        (keys(&[2, 1]), Rewriting::Seal, (41, 0, false), 0),
        (keys(&[2]), Rewriting::Clear, (41, 0, false), 1),
        (keys(&[3]), Rewriting::Seal, (41, 0, false), 0),
        (keys(&[4]), Rewriting::Seal, (0, 41, true), 0),
    ] {
        assert_eq!(rekeyed(&encryption, how).await, expected);
        assert_eq!(files_with(folder.path(), "canarywords"), clear);
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn traces_in_postgres_follow_the_keys() {
    use crate::postgres::postgres;
    use store::PostgresOptions;
    let server = postgres!();
    let opened = async |encryption: Encryption| {
        let store = Store::encrypted_postgres(&server.url(), &PostgresOptions::default(), encryption).await.unwrap();
        TraceStore::shared(&store).unwrap()
    };
    let traces = opened(keys(&[1])).await;
    traces.add(batched((0..40).map(|n| with_words("t", n, "canarywords ")))).await.unwrap();
    // As if the sessions' keys had followed already: these need both.
    for (encryption, rewritten, dropped) in [(keys(&[2, 1]), 41, 0), (keys(&[1, 2]), 41, 0), (keys(&[1]), 0, 0)] {
        let traces = opened(encryption).await;
        let done = traces.rekey(Rewriting::Seal, &mut |_| ()).await.unwrap();
        assert_eq!((done.rewritten, done.dropped), (rewritten, dropped));
        assert!(!traces.find("req_t_7".into(), None).await.unwrap().unwrap().unreadable);
    }
    assert_eq!(traces.erase(Tenant::new("t")).await.unwrap(), 40);
}

/// Of a store that is full of sessions nothing is taken for traces.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_file_of_sessions_is_not_used_for_traces() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let store = Store::sqlite(&path, &SqliteOptions::default()).unwrap();
    assert!(matches!(open(&path), Err(OpenError::Traces { .. })));
    store.close().await;
}

/// How long what people wait for takes with very many traces. With `GODEX_FULL=1` a million, and the times are shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_million_traces_are_searched() {
    let full = std::env::var_os("GODEX_FULL").is_some();
    let (count, batch) = if full { (1_000_000, 100) } else { (10_000, 100) };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let traces = open(&path).unwrap();
    let day = 86_400_000_000;
    // About as long as they are, and as much alike.
    let document = |number: i64| {
        let part = |number: i64| number.unsigned_abs();
        let micros = |micros: i64| Duration::from_micros(part(micros));
        let mut document = TraceDocument::default();
        document.object(member::REQUEST, |request| {
            request.text(member::METHOD, "POST").text(member::PATH, "/v1/responses").flag(member::STREAM, true);
            request.int(member::ITEMS, part(number % 31)).int(member::BYTES, part(number * 7 % 9_999));
        });
        document.objects(member::ATTEMPTS, &[number], |number, attempt| {
            attempt.text(member::TARGET, "zhipu/glm-5").text(member::WIRE, "chat").text(member::OUTCOME, "accepted");
            attempt.int(member::STATUS, 200).time(member::TOOK, micros(number % 800_000));
            attempt.int(member::BYTES, part(number * 13 % 77_777));
        });
        document.objects(member::TOOL_CALLS, &[3, 5, 7], |n, call| {
            call.text(member::NAME, "shell").text(member::KIND, "mcp").text(member::OUTCOME, "completed");
            call.time(member::TOOK, micros(number * n % 997_000));
        });
        document.object(member::TIMES, |times| {
            times.time(member::OPENED, micros(number % 811)).time(member::PLANNING, micros(number % 331));
            times.time(member::FIRST_BYTE, micros(number % 2_111_000));
            times.time(member::LAST_BYTE, micros(number % 5_113_000));
        });
        document.object(member::EVENTS, |events| {
            events.int(member::UPSTREAM, part(number % 313)).int(member::SENT, part(number % 411));
        });
        document.object(member::USAGE, |usage| {
            usage.int(member::INPUT_TOKENS, part(number)).int(member::OUTPUT_TOKENS, part(number % 1_117));
        });
        document.into_bytes()
    };
    let many = |number: i64| {
        let tenant = format!("tenant{}", number % 20);
        let rare = number == count / 3;
        let began_at = BEGIN + number * (day / count);
        let id = |number: i64| format!("resp_019a8b{number:012x}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
        let row = TraceRow {
            began_at,
            request_id: format!("req_019a8b{number:012x}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").into(),
            response_id: Some(id(number).into()),
            previous_response_id: (number % 10 != 0).then(|| id(number - 20).into()),
            conversation_id: None,
            key: Some(if rare { "rare".into() } else { format!("key{}", number % 50).into() }),
            model: Some(if rare { "rare".into() } else { format!("m{}", number % 7).into() }),
            provider: Some(if rare { "rare".into() } else { "usual".into() }),
            outcome: if rare { "rare" } else { "completed" }.into(),
            notes: if rare { "rare" } else { "dropped.param" }.into(),
            took_micros: if rare { 99_000_000 } else { 1_000 + number % 9_000 },
            error: rare.then(|| "rare".into()),
            status: Some(200),
            ..row(&tenant, number)
        };
        Sample { row, document: document(number), payloads: Vec::new() }
    };
    let mut adding = Duration::ZERO;
    for start in (0..count).step_by(batch.try_into().unwrap()) {
        let new: Vec<Sample> = (start..(start + batch).min(count)).map(many).collect();
        let began = Instant::now();
        traces.add(batched(new)).await.unwrap();
        adding += began.elapsed();
    }
    let size = std::fs::metadata(&path).unwrap().len();
    println!("{count} traces: {adding:?} to write ({:?} each), {size} bytes", adding / u32::try_from(count).unwrap());
    let some = |text: &str| Some(text.to_owned());
    let all = TraceFilter::default;
    let wanted = many(count / 3).row;
    for (name, filter, expected) in [
        ("newest", all(), 50),
        ("tenant", of("tenant7"), 50),
        ("rare key", TraceFilter { key: some("rare"), ..all() }, 1),
        ("rare model", TraceFilter { model: some("rare"), ..all() }, 1),
        ("rare provider", TraceFilter { provider: some("rare"), ..all() }, 1),
        ("rare outcome", TraceFilter { outcome: some("rare"), ..all() }, 1),
        ("errors", TraceFilter { errors: true, ..all() }, 1),
        ("rare note", TraceFilter { note: some("rare"), ..all() }, 1),
        ("unknown note", TraceFilter { note: some("unknown"), ..all() }, 0),
        ("slow", TraceFilter { slower_than_micros: Some(90_000_000), ..all() }, 1),
        ("request", TraceFilter { id: Some(wanted.request_id.to_string()), ..all() }, 1),
        ("until", TraceFilter { until: Some(BEGIN + day / 2), ..all() }, 50),
        ("since", TraceFilter { since: Some(BEGIN + day - day / 100), ..all() }, 50),
    ] {
        let began = Instant::now();
        let found = traces.list(filter, newest(50)).await.unwrap();
        println!("list {name}: {:?}", began.elapsed());
        assert_eq!(found.len(), expected, "{name}");
    }
    let began = Instant::now();
    assert!(traces.find(wanted.response_id.clone().unwrap().into(), None).await.unwrap().is_some());
    println!("find: {:?}", began.elapsed());
    let began = Instant::now();
    let chain = traces.chain(wanted.tenant.to_string(), wanted.response_id.unwrap().into(), 200).await.unwrap();
    println!("chain of {}: {:?}", chain.len(), began.elapsed());
    for (name, filter) in [("all", all()), ("of a tenant", of("tenant7"))] {
        let began = Instant::now();
        let filter = TraceFilter { since: Some(BEGIN), until: Some(BEGIN + day), ..filter };
        let points = traces.series(filter, day / 200).await.unwrap();
        println!("series {name}: {:?}", began.elapsed());
        let expected = if name == "all" { count } else { count / 20 };
        assert_eq!(points.iter().map(|point| point.requests).sum::<u64>(), expected.unsigned_abs());
    }
}

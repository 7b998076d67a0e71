//! `kill -9`, again and again, under load: nothing that was acknowledged is lost, nothing deleted is back.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use super::book::Book;
use super::chance::Chance;
use super::check::{self, Findings};
use super::client::{Client, Cycle};
use super::http::Http;
use super::server::{Godex, Home};

const CLIENTS: usize = 16;
/// Of what earlier cycles stored, so many are looked at again in each; all of them at the end.
const AGAIN: usize = 100;

/// One home, its clients, and what they were told.
struct Rig {
    home: Home,
    clients: Vec<Client>,
    book: Book,
    chance: Chance,
    starts: usize,
    acknowledged: usize,
}

pub(super) fn run(cycles: usize, seed: u64) -> Result<()> {
    control(seed)?;
    let began = Instant::now();
    let mut rig = Rig::new("kill", "sqlite", seed)?;
    let mut findings = Findings::default();
    // The first starts of all: the folder, the file and its tables are made under the axe.
    let mut early = 0;
    for _ in 0..8 {
        early += rig.kill_early()?;
    }
    let mut fresh: Vec<String> = Vec::new();
    let mut settled = Duration::ZERO;
    for cycle in 0..cycles {
        if cycle % 4 == 3 {
            early += rig.kill_early()?;
        }
        let godex = rig.start()?;
        settled =
            settled.max(check::settled(&rig.home.database()).with_context(|| format!("cycle {cycle}, seed {seed}"))?);
        let ids = rig.some(fresh);
        findings.add(check::check(&mut rig.book, &ids, godex.address)?);
        fresh = rig.load(godex)?;
        if cycles <= 100 || cycle % 10 == 0 {
            findings.other.extend(check::file(&rig.home.database(), &rig.home.folder().join("copy"))?);
        }
        ensure!(findings.none(), "cycle {cycle}, seed {seed}: {findings:#?}");
        if cycle % 20 == 19 {
            println!("{} cycles, {} acknowledged, {} s", cycle + 1, rig.acknowledged, began.elapsed().as_secs());
        }
    }
    let godex = rig.start()?;
    settled = settled.max(check::settled(&rig.home.database())?);
    let everything = rig.everything();
    findings.add(check::check(&mut rig.book, &everything, godex.address)?);
    println!(
        "{cycles} cycles of kill -9 and {early} kills while starting, {CLIENTS} clients: {} answers acknowledged, of \
         them {} responses, {} conversations and {} deletions; {} looked at, lost {}, resurrected {}, otherwise wrong {}; \
         everything has its end within {:.1} s of a start",
        rig.acknowledged,
        rig.book.responses.len(),
        rig.book.conversations.len(),
        rig.book.deletions,
        findings.checked,
        findings.lost.len(),
        findings.resurrected.len(),
        findings.other.len(),
        settled.as_secs_f64()
    );
    ensure!(findings.none(), "seed {seed}: {findings:#?}");
    Ok(())
}

/// The same with a store that cannot survive: if nothing is lost then, this finds nothing.
fn control(seed: u64) -> Result<()> {
    let mut rig = Rig::new("control", "memory", seed)?;
    let godex = rig.start()?;
    let mut ids = rig.load(godex)?;
    ids.sort();
    let godex = rig.start()?;
    let findings = check::check(&mut rig.book, &ids, godex.address)?;
    println!("control, sessions in memory: {} of {} lost", findings.lost.len(), findings.checked);
    ensure!(!findings.lost.is_empty(), "sessions in memory survived kill -9: the check is worth nothing");
    Ok(())
}

impl Rig {
    fn new(name: &str, backend: &str, seed: u64) -> Result<Self> {
        let home = Home::new(name, backend)?;
        let clients =
            (0..CLIENTS).map(|client| Client::new(client, &home.ledger(client), seed)).collect::<Result<_>>()?;
        Ok(Self { home, clients, book: Book::default(), chance: Chance::new(seed), starts: 0, acknowledged: 0 })
    }

    fn start(&mut self) -> Result<Godex> {
        self.starts += 1;
        self.home.start(self.starts)
    }

    /// Kills it while it starts.
    fn kill_early(&mut self) -> Result<usize> {
        self.starts += 1;
        let godex = self.home.begin(self.starts)?;
        thread::sleep(Duration::from_millis(self.chance.next() % 120));
        drop(godex);
        Ok(1)
    }

    /// All clients at once, until it is killed. Gives the ids that the ledgers then speak of.
    fn load(&mut self, godex: Godex) -> Result<Vec<String>> {
        let (cycle, address) = (Cycle::default(), godex.address);
        let until = Duration::from_millis(100 + self.chance.next() % 600);
        thread::scope(|scope| {
            let clients = self.clients.iter_mut();
            let cycle = &cycle;
            let threads: Vec<_> =
                clients.map(|client| scope.spawn(move || client.work(|| Http::connect(address), cycle))).collect();
            thread::sleep(until);
            cycle.killed.store(true, Ordering::SeqCst);
            drop(godex);
            let mut ended =
                threads.into_iter().map(|thread| thread.join().map_err(|_panic| anyhow!("a client panicked"))?);
            ended.try_for_each(|ended| ended)
        })?;
        self.acknowledged += cycle.acknowledged.into_inner();
        let mut ids = Vec::new();
        for client in 0..CLIENTS {
            ids.extend(self.book.read(&self.home.ledger(client)).context("a ledger")?);
        }
        Ok(ids)
    }

    /// These, and some of all, in order and each once.
    fn some(&mut self, mut ids: Vec<String>) -> Vec<String> {
        let all: Vec<&String> = self.book.responses.keys().chain(self.book.conversations.keys()).collect();
        ids.extend((0..AGAIN).filter_map(|_| self.chance.any(&all)).map(|id| (*id).clone()));
        ids.sort();
        ids.dedup();
        ids
    }

    fn everything(&self) -> Vec<String> {
        let mut all: Vec<String> = self.book.responses.keys().chain(self.book.conversations.keys()).cloned().collect();
        all.sort();
        all
    }
}

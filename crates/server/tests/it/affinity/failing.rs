//! One of several addresses fails: its conversations go elsewhere without a failed request, and come back.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use super::*;
use crate::rig::spawn;

/// Longer than it takes to notice that one is back, and to trust it.
const PATIENCE: Duration = Duration::from_mins(1);

/// The way to an address, which can be closed: then connections are refused.
struct Door {
    address: SocketAddr,
    running: JoinHandle<()>,
}

impl Door {
    fn open(at: Option<SocketAddr>, to: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(at.unwrap_or_else(|| "127.0.0.1:0".parse().unwrap())).unwrap();
        let listener = socket.listen(64).unwrap();
        let address = listener.local_addr().unwrap();
        let running = spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((mut one, _)) = listener.accept().await {
                open.spawn(async move {
                    if let Ok(mut other) = TcpStream::connect(to).await {
                        let _ = copy_bidirectional(&mut one, &mut other).await;
                    }
                });
            }
        });
        Self { address, running }
    }

    /// Ends all connections, and refuses others.
    async fn close(self) -> SocketAddr {
        self.running.abort();
        let _ = self.running.await;
        self.address
    }
}

/// Where the last turn of each conversation went.
async fn round(rig: &Rig, replicas: &[Replica], talks: &mut [Talk]) -> Vec<usize> {
    let before: Vec<_> = talks.iter().map(|talk| heard(replicas, &talk.words)).collect();
    join_all(talks.iter_mut().map(|talk| talk.turn(rig))).await;
    let place = |(talk, before): (&Talk, &BTreeMap<usize, usize>)| {
        let now = heard(replicas, &talk.words);
        // Whoever fails may have heard it, too; who is asked last has answered.
        let grown = now.into_iter().filter(|(at, count)| before.get(at).is_none_or(|before| before < count));
        let grown: Vec<usize> = grown.map(|(at, _)| at).collect();
        if let [only] = grown[..] { only } else { grown.into_iter().max_by_key(|at| usize::from(*at != 0)).unwrap() }
    };
    talks.iter().zip(&before).map(place).collect()
}

/// Conversations, whose own addresses are known; the first has some of them.
async fn begin(rig: &Rig, replicas: &[Replica]) -> (Vec<Talk>, Vec<usize>) {
    let ways = [Way::Sync, Way::Sse, Way::Background, Way::OwnHistory];
    let mut talks: Vec<Talk> = (0..16).map(|number| Talk::new(ways[number % 4], number)).collect();
    let mut home = Vec::new();
    // One after the other: none is crowded.
    for talk in &mut talks {
        home.extend(round(rig, replicas, std::slice::from_mut(talk)).await);
    }
    assert!(home.contains(&0), "{home:?}");
    (talks, home)
}

/// Turns until all are where they belong.
async fn until_home(rig: &Rig, replicas: &[Replica], talks: &mut [Talk], home: &[usize]) {
    let began = Instant::now();
    loop {
        let mut now = Vec::new();
        for talk in talks.iter_mut() {
            now.extend(round(rig, replicas, std::slice::from_mut(talk)).await);
        }
        if now == home {
            return;
        }
        for (now, home) in now.iter().zip(home) {
            assert!(now == home || *home == 0, "who was not there has not moved");
        }
        assert!(began.elapsed() < PATIENCE, "{now:?} is not {home:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// While the first is in trouble, and afterwards.
async fn fares(mood: Mood) {
    let replicas = replicas(3).await;
    let rig = serving(&urls(&replicas), "backend: memory").await;
    let (mut talks, home) = begin(&rig, &replicas).await;
    replicas[0].is(mood);
    let began = Instant::now();
    for number in 0..4 {
        let now = round(&rig, &replicas, &mut talks).await;
        if number > 0 && mood != Mood::Drains {
            assert!(!now.contains(&0), "{mood:?}: {now:?}");
        }
    }
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    replicas[0].is(Mood::Well);
    until_home(&rig, &replicas, &mut talks, &home).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_hangs_is_not_waited_for() {
    fares(Mood::Hangs).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_answers_503_is_left() {
    fares(Mood::Fails).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_drains_gets_nothing_new() {
    let replicas = replicas(3).await;
    let rig = serving(&urls(&replicas), "backend: memory").await;
    let (mut talks, home) = begin(&rig, &replicas).await;
    replicas[0].is(Mood::Drains);
    until_up(&rig, 2).await;
    for _ in 0..2 {
        let now = round(&rig, &replicas, &mut talks).await;
        assert!(!now.contains(&0), "{now:?}");
    }
    replicas[0].is(Mood::Well);
    until_home(&rig, &replicas, &mut talks, &home).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_refuses_connections_is_left() {
    let replicas = replicas(3).await;
    let mut urls = urls(&replicas);
    let door = Door::open(None, replicas[0].upstream.address());
    urls[0] = format!("http://{}/v1", door.address);
    let rig = serving(&urls, "backend: memory").await;
    let (mut talks, home) = begin(&rig, &replicas).await;
    let address = door.close().await;
    for _ in 0..3 {
        let now = round(&rig, &replicas, &mut talks).await;
        assert!(!now.contains(&0), "{now:?}");
    }
    let _door = Door::open(Some(address), replicas[0].upstream.address());
    until_home(&rig, &replicas, &mut talks, &home).await;
}

/// Waits until so many take requests.
async fn until_up(rig: &Rig, count: usize) {
    let began = Instant::now();
    while rig.get("/health").await.json()["replicas"]["up"]["up"] != count {
        assert!(began.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Many requests of one conversation at once: its own address is not given all of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_is_spread() {
    let mut replicas = Vec::new();
    for _ in 0..4 {
        let slow = |received: &Received| forgetful(received).delay(Duration::from_secs(5));
        replicas.push(Replica::answering(slow).await);
    }
    let rig = serving(&urls(&replicas), "backend: memory").await;
    let body = json!({"model": "m", "input": "all at once", "prompt_cache_key": "one", "stream": true});
    let answers = join_all((0..40).map(|_| rig.post(&body))).await;
    assert!(answers.iter().all(|answer| answer.status == 200));
    let counts: Vec<usize> = replicas.iter().map(|replica| replica.heard("all at once")).collect();
    assert_eq!(counts.iter().sum::<usize>(), 40);
    // A quarter more than the mean, of those that are open at that moment.
    assert!(counts.iter().all(|count| *count <= 20), "{counts:?}");
    assert!(counts.iter().filter(|count| **count > 0).count() > 2, "{counts:?}");
    // Alone, it is where it was.
    let home = counts.iter().position(|count| *count == *counts.iter().max().unwrap()).unwrap();
    rig.post(&json!({"model": "m", "input": "later", "prompt_cache_key": "one"})).await;
    assert_eq!(heard(&replicas, "later").len(), 1);
    assert!(replicas[home].heard("later") == 1 || counts.iter().filter(|count| **count == counts[home]).count() > 1);
}

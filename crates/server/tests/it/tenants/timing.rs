//! That something is there and is another's cannot be told by time either.
//!
//! Method. Requests of two kinds go over one connection, one at a time, in rounds; the order within a round is random, so
//! that whatever slows the machine slows both alike. A third kind, drawn like the second, measures the noise of the day.
//! The rounds are cut into blocks; of each block the logarithm of the ratio of two medians is taken, for the kinds that are
//! compared (A/B) and for the two that are alike (A/A). The mean A/B ratio must be within what the A/A ratios scatter:
//! four standard errors of theirs, and never asked to be closer than 2 %, which is a microsecond or two. No ratio depends
//! on how fast the machine is. What fails is measured again, twice: noise does not come three times, a difference does.
//! That a difference would be found is shown with two kinds that differ.

use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

const BLOCKS: u32 = 24;
const ROUNDS: usize = 60;
/// A closer look than this is not asked for.
const LEAST: f64 = 0.02;

/// One connection, and requests as they are on the wire.
struct Wire {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Wire {
    async fn connect(rig: &Rig) -> Self {
        let stream = TcpStream::connect(rig.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, buffer: vec![0; 1 << 16] }
    }

    /// How long the answer takes, which must have this status.
    #[expect(clippy::disallowed_methods, reason = "it is time that is measured")]
    async fn time(&mut self, request: &str, status: &str) -> f64 {
        let began = Instant::now();
        self.stream.write_all(request.as_bytes()).await.unwrap();
        let mut read = 0;
        loop {
            let more = self.stream.read(&mut self.buffer[read..]).await.unwrap();
            assert!(more > 0, "it hung up");
            read += more;
            if is_whole(&self.buffer[..read]) {
                break;
            }
        }
        let took = began.elapsed().as_secs_f64();
        let head = String::from_utf8_lossy(&self.buffer[..12]).into_owned();
        assert_eq!(head, format!("HTTP/1.1 {status}"), "{request}");
        took
    }
}

/// Whether all of an answer with a length is there.
fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
    body.len() >= length.expect("a length").parse().unwrap()
}

fn request(path: &str, key: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\r\n")
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Kinds of requests, each as what makes the next one and the status that it gets: the kind in question, and what it is
/// compared with, twice.
type Kind<'k> = (&'k mut dyn FnMut(&mut Chance) -> String, &'k str);

/// The mean of the logarithms of the blocks' ratios, and what the noise allows it to be.
async fn measured(rig: &Rig, kinds: &mut [Kind<'_>; 3], chance: &mut Chance) -> (f64, f64) {
    let mut wire = Wire::connect(rig).await;
    let (mut ratios, mut noise) = (Vec::new(), Vec::new());
    for block in 0..=BLOCKS {
        let mut times: [Vec<f64>; 3] = Default::default();
        for _ in 0..ROUNDS {
            let first = chance.below(3) as usize;
            let step = 1 + chance.below(2) as usize;
            for turn in 0..3 {
                let kind = (first + turn * step) % 3;
                let (make, status) = &mut kinds[kind];
                let request = make(chance);
                times[kind].push(wire.time(&request, status).await);
            }
        }
        let [question, one, two] = times.each_mut().map(|times| median(times).ln());
        // The first block warms up.
        if block > 0 {
            ratios.push(question - f64::midpoint(one, two));
            noise.push(one - two);
        }
    }
    let mean = |all: &[f64]| all.iter().sum::<f64>() / f64::from(BLOCKS);
    let square: Vec<f64> = noise.iter().map(|ratio| ratio * ratio).collect();
    (mean(&ratios), LEAST.max(4.0 * mean(&square).sqrt() / (f64::from(BLOCKS)).sqrt()))
}

/// Whether the kinds can be told apart, in three tries of three.
async fn differ(rig: &Rig, what: &str, mut kinds: [Kind<'_>; 3]) -> bool {
    let mut chance = Chance(0x2545_F491_4F6C_DD1D);
    for _ in 0..3 {
        let (mean, bound) = measured(rig, &mut kinds, &mut chance).await;
        println!("{what}: {:+.2} %, where {:.2} % may be chance", 100.0 * mean, 100.0 * bound);
        if mean.abs() < bound {
            return false;
        }
    }
    true
}

/// Of each kind that there is, on a disk: the owner's, as the other one asks for it, and ids that nobody has.
#[tokio::test]
async fn a_foreign_id_takes_as_long_as_an_unknown_one() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(&format!("sqlite: {{path: '{}'}}", folder.path().join("sessions.db").display())).await;
    let paths: [(&str, &[String]); 3] = [
        ("/v1/responses/{}", &world.responses),
        ("/v1/responses/{}/input_items", &world.responses),
        ("/v1/conversations/{}", &world.conversations),
    ];
    for (path, ids) in paths {
        let at = |id: &str| request(&path.replace("{}", id), OTHER);
        let never = |chance: &mut Chance| {
            let like = chance.of(ids).clone();
            at(&unknown(&like, chance))
        };
        // As much work as for the others.
        let mut foreign = |chance: &mut Chance| {
            let (theirs, _) = (chance.of(ids).clone(), unknown(&ids[0], chance));
            at(&theirs)
        };
        let (mut one, mut two) = (never, never);
        let kinds: [Kind<'_>; 3] = [(&mut foreign, "404"), (&mut one, "404"), (&mut two, "404")];
        assert!(!differ(&world.rig, path, kinds).await, "{path}: a foreign id can be told by the time that it takes");
    }
    // What differs is found.
    let ids = &world.responses;
    let mut own = |chance: &mut Chance| request(&format!("/v1/responses/{}", chance.of(ids)), OWNER);
    let never = |chance: &mut Chance| request(&format!("/v1/responses/{}", unknown(&ids[0], chance)), OWNER);
    let (mut one, mut two) = (never, never);
    let kinds: [Kind<'_>; 3] = [(&mut own, "200"), (&mut one, "404"), (&mut two, "404")];
    assert!(differ(&world.rig, "one's own", kinds).await, "the method finds nothing");
}

/// A key that is nearly right takes as long as one that is not at all.
#[tokio::test]
async fn a_key_that_is_nearly_right_takes_as_long_as_any_other() {
    let rig = rig(Upstream::start_with(provider).await.unwrap(), "backend: memory", "").await;
    let letters: Vec<char> = ('a'..='z').chain('0'..='9').collect();
    let random = |chance: &mut Chance, keep: usize| {
        let rest = (keep..OWNER.len()).map(|_| *chance.of(&letters)).collect::<String>();
        request("/v1/models", &format!("{}{rest}", &OWNER[..keep]))
    };
    let mut nearly = |chance: &mut Chance| random(chance, OWNER.len() - 2);
    let never = |chance: &mut Chance| random(chance, 0);
    let (mut one, mut two) = (never, never);
    let kinds: [Kind<'_>; 3] = [(&mut nearly, "401"), (&mut one, "401"), (&mut two, "401")];
    assert!(!differ(&rig, "a key", kinds).await, "a key can be found piece by piece");
}

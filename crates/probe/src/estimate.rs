//! What a probe will cost, before it starts: the battery is run against the demo model, which costs nothing. It chats
//! only, so that all is asked as chat there.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bridge::Replay;
use providers::Wire;
use providers::demo::{self, Step};
use serde_json::Value;

use crate::ask::{Answer, Endpoint, Outcome, ProbeUpstream, Request};
use crate::checks;
use crate::run::{Cost, Limits, Settings, THOUGHT};

/// Only one request is longer than this.
const OVERFLOW: u64 = 100_000;

/// About how much; an upstream that refuses much is asked more often.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Estimate {
    pub requests: usize,
    /// The same for each check.
    pub costs: Vec<Cost>,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Whether thoughts are among the output: the spec says that its models think.
    pub thoughts: bool,
    /// The input that is meant to be refused, where it is allowed.
    pub overflow_tokens: u64,
}

pub fn estimate(settings: &Settings) -> Estimate {
    let limits = Limits { requests: usize::MAX, tokens: u64::MAX };
    let unlimited = Settings { limits, ..settings.clone() };
    let mut counting = Counting { estimate: Estimate::default(), thought: thought(settings) };
    let result = {
        let mut run = pin!(checks::run_in(&mut counting, &unlimited, Wire::Chat));
        // The demo model never waits, so this ends at the first poll.
        loop {
            if let Poll::Ready(result) = run.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                break result;
            }
        }
    };
    let costs = result.map(|probed| probed.costs).unwrap_or_default();
    let estimate = counting.estimate;
    let requests = estimate.requests.min(settings.limits.requests);
    Estimate { requests, costs, thoughts: counting.thought > 0, ..estimate }
}

fn thought(settings: &Settings) -> u64 {
    let rules = &settings.dialect.request.reasoning;
    if rules.on.is_some() || rules.replay != Replay::Never { THOUGHT } else { 0 }
}

struct Counting {
    estimate: Estimate,
    thought: u64,
}

impl ProbeUpstream for Counting {
    async fn send(&mut self, request: Request) -> Outcome {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let limit =
            ["max_tokens", "max_completion_tokens", "max_output_tokens"].iter().find_map(|key| body[*key].as_u64());
        self.estimate.requests += 1;
        let input = request.body.len() as u64 / 4;
        if input > OVERFLOW {
            self.estimate.overflow_tokens += input;
        } else {
            self.estimate.input_tokens += input;
        }
        // The demo model thinks when it is asked to; whether this one does, its spec tells best.
        let limit = limit.map_or(0, |limit| if limit > THOUGHT { limit - THOUGHT } else { limit });
        // A budget for thoughts is room for as many.
        let budget = body["thinking"]["budget_tokens"].as_u64().unwrap_or(0);
        self.estimate.output_tokens += limit + self.thought.max(budget);
        Outcome::Answered(answer(&request))
    }
}

/// The demo model's answer, without its pauses.
fn answer(request: &Request) -> Answer {
    if request.endpoint != Endpoint::Chat {
        return Answer { status: 404, whole: true, ..Answer::default() };
    }
    match demo::answer(&request.body).fold() {
        Step::Status { status, body, .. } => {
            Answer { status, content_type: "application/json".to_owned(), body, whole: true, ..Answer::default() }
        }
        _ => Answer::default(),
    }
}

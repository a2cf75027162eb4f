//! Runs a rush.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;
use urr_kernel::{Clock, IdSource, Uuid};

use crate::accounts::FanAccount;
use crate::arrivals::Arrivals;
use crate::behaviour::{Behaviour, FanDecisions};
use crate::client::{FanClient, FanRequest, Site};
use crate::fan::{EventFacts, Fan, Rush};
use crate::monitor::RoomSamples;
use crate::recorder::{LiveFigures, Recorder};
use crate::report::{RushEnding, RushReport, RushSetup};

/// So many seconds in a row the event is sold out and nobody acts, before the rush ends.
const SOLD_OUT_SECONDS: u32 = 3;
/// A system that does not answer says nothing: its last sample counts for so many seconds.
const SAMPLE_SECONDS_MAX: u64 = 2;

/// What is to be rehearsed.
#[derive(Clone, Debug)]
pub struct RushPlan {
    pub site: Site,
    pub event_id: Uuid,
    pub accounts: Vec<FanAccount>,
    pub arrivals: Arrivals,
    pub behaviour: Behaviour,
    pub seed: u64,
    pub connections: usize,
    /// From how many addresses requests come, if the site is on this machine.
    pub addresses: u16,
    /// The rush ends after this time, whatever is left.
    pub time_max: Duration,
    /// Whether it ends when the event is sold out and nobody can buy any more. The fans who wait
    /// then are not waited for.
    pub until_sold_out: bool,
}

/// Runs the plan to its end, or until `stop` is done. `show` is called once a second.
pub async fn run(
    plan: RushPlan,
    stop: impl Future<Output = ()>,
    mut show: impl FnMut(&LiveFigures),
) -> Result<RushReport> {
    ensure!(!plan.accounts.is_empty(), "a rush needs fans");
    let client = FanClient::new(plan.site.clone(), plan.connections, plan.addresses);
    let event = read_event(&client, plan.event_id).await?;
    let started_at = Clock::System.now();
    let started = Instant::now();
    let fans = plan.accounts.len();
    let setup = RushSetup {
        url: plan.site.url().to_owned(),
        event_id: plan.event_id,
        event_title: event.title.clone(),
        capacity: event.capacity,
        seed: plan.seed,
        fans,
        started_at,
    };
    let rush = Arc::new(Rush {
        client,
        recorder: Recorder::new(started),
        event,
        ids: IdSource::from_system_randomness(Clock::System),
        stolen_token: Mutex::default(),
    });
    let samples = RoomSamples::default();
    let _monitor = AbortOnDropHandle::new(tokio::spawn(samples.clone().collect(Arc::clone(&rush))));
    let (ends_at, until_sold_out) = (started + plan.time_max, plan.until_sold_out);
    let mut tasks = start_fans(plan, &rush, started);
    let mut stop = pin!(stop);
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    let mut sold_out_seconds = 0;
    let ending = loop {
        tokio::select! {
            ended = tasks.join_next() => match ended {
                Some(fan) => fan.context("a fan has a bug")?,
                None => break RushEnding::Complete,
            },
            _ = tick.tick() => {
                let last = samples.last();
                let room = last.map(|it| (it.waiting, it.inside, it.threshold));
                show(&rush.recorder.live(fans, room));
                // Whoever acts may still buy, or give back what they bought.
                let now = started.elapsed().as_secs();
                let is_sold_out = last
                    .is_some_and(|it| it.sold_out && it.second + SAMPLE_SECONDS_MAX >= now);
                let is_over = is_sold_out && rush.recorder.acting() == 0;
                sold_out_seconds = if is_over { sold_out_seconds + 1 } else { 0 };
                if until_sold_out && sold_out_seconds >= SOLD_OUT_SECONDS {
                    break RushEnding::SoldOut;
                }
            }
            () = tokio::time::sleep_until(ends_at) => break RushEnding::TimeOver,
            () = &mut stop => break RushEnding::Interrupted,
        }
    };
    tasks.abort_all();
    let stopped = timeout_at(Instant::now() + Duration::from_secs(5), drain(&mut tasks));
    ensure!(stopped.await.is_ok(), "fans did not stop");
    let took = started.elapsed();
    Ok(RushReport::new(setup, ending, &rush.recorder.records(), samples.all(), took))
}

async fn drain(tasks: &mut JoinSet<()>) {
    while tasks.join_next().await.is_some() {}
}

fn start_fans(plan: RushPlan, rush: &Arc<Rush>, started: Instant) -> JoinSet<()> {
    let arrivals = plan.arrivals.draw(plan.accounts.len(), plan.seed);
    let mut tasks = JoinSet::new();
    for ((number, account), arrival) in plan.accounts.into_iter().enumerate().zip(arrivals) {
        let decisions = FanDecisions::draw(&plan.behaviour, plan.seed, number as u64);
        let (arrives_at, rush) = (started + arrival, Arc::clone(rush));
        tasks.spawn(Fan { number, account, decisions, arrives_at, rush }.run());
    }
    tasks
}

/// Asks for the event and checks that it can be rehearsed.
async fn read_event(client: &FanClient, id: Uuid) -> Result<EventFacts> {
    let answer = client.send(0, FanRequest::get(format!("/api/events/{id}"))).await;
    let answer = answer.ok().context("the site does not answer; is URR running there?")?;
    ensure!(answer.status.is_success(), "event {id}: {} {}", answer.status, answer.code());
    let event = &answer.body["event"];
    let mut grades: Vec<(i64, String)> = event["prices"]
        .as_object()
        .map(|prices| {
            let price = |(grade, won): (&String, &Value)| Some((won.as_i64()?, grade.clone()));
            prices.iter().filter_map(price).collect()
        })
        .unwrap_or_default();
    grades.sort_unstable();
    let ticket_types = event["ticketTypes"].as_array().into_iter().flatten();
    let ticket_types = ticket_types.filter_map(|it| it["id"].as_str().map(str::to_owned));
    let capacity = event["capacity"].as_u64().and_then(|it| usize::try_from(it).ok());
    Ok(EventFacts {
        id,
        title: event["title"].as_str().unwrap_or_default().to_owned(),
        capacity: capacity.context("the event has no capacity")?,
        grades: grades.into_iter().rev().map(|(_, grade)| grade).collect(),
        ticket_types: match event["kind"] == "standing" {
            true => ticket_types.collect(),
            false => Vec::new(),
        },
        seats_per_user_max: event["seatsPerUserMax"]
            .as_u64()
            .and_then(|it| u32::try_from(it).ok())
            .unwrap_or(1),
    })
}

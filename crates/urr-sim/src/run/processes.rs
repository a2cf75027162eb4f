//! What happens to processes, clocks and the provider as a whole.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use urr_storage::StepFault;

use super::{PROVIDER, PROVIDER_REQUEST_LIFE, Run, STEP};
use crate::services::{ProcessStart, ServiceStart, SimulatedProcess};

impl Run {
    pub(super) async fn maybe_fail_at_large(&mut self) {
        let swarm = self.swarm;
        if self.faults.fires(swarm.crashes, 12, &mut self.random) {
            self.crash();
        }
        // What has died comes back soon.
        let is_down = self.places.iter().any(|place| place.process.is_none());
        if is_down && self.random.chance(60) {
            self.start_missing().await;
        }
        if self.faults.fires(swarm.provider_outages, 6, &mut self.random) {
            self.set_provider_down(true);
        }
        if self.is_provider_down && self.random.chance(40) {
            self.set_provider_down(false);
        }
        if self.faults.fires(swarm.clock_jumps, 6, &mut self.random) {
            let seconds = u64::try_from(1 + self.random.below(90)).expect("it is small");
            let by = Duration::from_secs(seconds);
            self.trace.step(&[5, seconds], || format!("all clocks jump by {seconds} s"));
            self.advance_clocks(by);
        }
    }

    pub(super) fn set_provider_down(&mut self, is_down: bool) {
        self.is_provider_down = is_down;
        self.surroundings.provider.set_down(is_down);
        let word = if is_down { "down" } else { "up" };
        self.trace.step(&[6, u64::from(is_down)], || format!("the provider is {word}"));
    }

    pub(super) fn crash(&mut self) {
        let place = self.random.below(self.places.len());
        let place = &mut self.places[place];
        let Some(mut process) = place.process.take() else { return };
        process.crash(&self.surroundings.registry);
        self.crashes += 1;
        let (role, number) = (place.role, process.number);
        self.trace.step(&[7, u64::from(number)], || format!("{} {number} crashes", role.name()));
    }

    /// Starts every process that is not there.
    pub(super) async fn start_missing(&mut self) {
        for index in 0..self.places.len() {
            if self.places[index].process.is_none() {
                self.start(index).await;
            }
        }
    }

    pub(super) async fn start(&mut self, index: usize) {
        self.next_number += 1;
        let (number, place) = (self.next_number, &self.places[index]);
        let (role, clock) = (place.role, Arc::clone(&place.clock));
        let start = ProcessStart { role, number, clock };
        let (mut process, handles) = SimulatedProcess::open(&self.surroundings, &start);
        let own = process.queues.iter().map(|(_, queue)| queue.clone());
        self.queues.lock().expect("nothing panics while it holds it").extend(own);
        let making = ServiceStart::new(&self.surroundings, start, handles.clone(), &process);
        let making = tokio::spawn(making.make());
        // Nothing else happens meanwhile.
        while !making.is_finished() {
            tokio::task::yield_now().await;
            for (_, queue) in &process.queues {
                while queue.count() > 0 {
                    queue.run(0, StepFault::None);
                }
            }
        }
        let live = making.await.expect("a service starts without a panic");
        process.join(&self.surroundings, live, &handles);
        self.trace.step(&[8, u64::from(number)], || format!("{} {number} starts", role.name()));
        self.places[index].process = Some(process);
    }

    /// Nothing waits: time passes.
    pub(super) async fn pass_a_while(&mut self) {
        let millis = self.random.pick(&[50, 300, 1_000, 1_000, 5_000]);
        let by = Duration::from_millis(millis);
        self.trace.step(&[9, millis], || format!("{millis} ms pass"));
        self.pass(by).await;
    }

    pub(super) async fn pass(&mut self, by: Duration) {
        self.advance_clocks(by);
        // A timer of the product never waits for more than this by our clock.
        tokio::time::sleep(by.min(Duration::from_millis(1_100))).await;
    }

    pub(super) fn advance_clocks(&mut self, by: Duration) {
        let micros = i64::try_from(by.as_micros()).expect("it is short");
        self.note_requests();
        self.clock.fetch_add(micros, Ordering::Relaxed);
        for place in &self.places {
            place.clock.fetch_add(micros, Ordering::Relaxed);
        }
        if by > STEP {
            self.drop_old_requests();
        }
    }

    /// Remembers since when requests are on their way to the provider.
    pub(super) fn note_requests(&mut self) {
        let now = self.clock.load(Ordering::Relaxed);
        self.provider_since.resize(self.foreign[PROVIDER].1.count(), now);
    }

    /// What has been on its way to the provider for long does not arrive any more.
    pub(super) fn drop_old_requests(&mut self) {
        let (_, queue) = &self.foreign[PROVIDER];
        let now = self.clock.load(Ordering::Relaxed);
        let life = i64::try_from(PROVIDER_REQUEST_LIFE.as_micros()).expect("it is short");
        while let Some(index) = self.provider_since.iter().position(|since| now - since > life) {
            self.provider_since.remove(index);
            queue.run(index, StepFault::Refused);
            self.trace.step(&[10], || "a request to the provider is lost".to_owned());
        }
    }
}

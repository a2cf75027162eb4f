//! Begins what people do, and the jobs of the services.

use super::{Run, RunningAction};
use crate::jobs::{self, JobKind};
use crate::plan::{Action, FanAction};
use crate::sabotage::Sabotage;

impl Run {
    pub(super) fn begin_action(&mut self) {
        // Whoever is busy finishes first, unless the browser is closed.
        let busy: Vec<usize> =
            self.running.iter().filter_map(|one| fan_of(one.pending.action)).collect();
        let is_free = |action: Action| match action {
            Action::Fan(_, FanAction::Disconnect) => true,
            Action::Fan(fan, _) => !busy.contains(&fan),
            _ => true,
        };
        let mut seen = Vec::new();
        let mut free = Vec::new();
        for (index, one) in self.actions.iter().enumerate() {
            // Everybody goes by their own script.
            let who = fan_of(one.action);
            if !seen.contains(&who) && is_free(one.action) {
                free.push(index);
            }
            seen.push(who);
        }
        if free.is_empty() {
            return;
        }
        let index = self.random.pick(&free);
        let pending = self.actions.remove(index);
        let number = pending.number;
        if self.kept_actions.as_ref().is_some_and(|kept| !kept.contains(&number)) {
            return;
        }
        if pending.attempts == 0 {
            self.happened.push(number);
        }
        let action = pending.action;
        self.trace.step(&[3, u64::from(number)], || format!("action {number}: {action:?}"));
        if let Action::Fan(fan, FanAction::Disconnect) = action {
            let own = self.running.iter().filter(|one| fan_of(one.pending.action) == Some(fan));
            own.for_each(|one| one.task.abort());
            return;
        }
        let fans = self.fans.clone();
        let task = tokio::spawn(async move { fans.act(action).await });
        self.running.push(RunningAction { pending, task });
    }

    pub(super) fn begin_job(&mut self) {
        let job = self.random.pick(&JobKind::ALL);
        self.spawn_job(job);
    }

    pub(super) fn spawn_job(&mut self, job: JobKind) {
        let is_off = match self.surroundings.sabotage {
            Some(Sabotage::ExpiryJob) => job == JobKind::ExpireHolds,
            Some(Sabotage::SagaRecovery) => job == JobKind::ResumePayments,
            _ => false,
        };
        if is_off {
            return;
        }
        let Some(process) = self.surroundings.registry.find(job.role()) else { return };
        let number = process.number;
        self.trace.step(&[4, job as u64, u64::from(number)], || format!("job {job:?} at {number}"));
        tokio::spawn(jobs::run(job, process));
    }
}

fn fan_of(action: Action) -> Option<usize> {
    match action {
        Action::Fan(fan, _) => Some(fan),
        _ => None,
    }
}

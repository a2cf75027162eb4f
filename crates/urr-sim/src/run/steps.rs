//! What can happen next, and how it happens: transactions and messages, with what goes wrong.

use urr_storage::{StepFault, StepQueue};

use super::{Choice, PROVIDER, Run};
use crate::databases::DatabaseName;
use crate::faults::Swarm;
use crate::network::MessageFate;
use crate::oracle::Violation;
use crate::sabotage::Sabotage;

impl Run {
    /// What can happen next. Of a slow provider most answers have to wait.
    pub(super) fn likely_choices(&mut self) -> Vec<Choice> {
        let is_awake = self.random.chance(60);
        let is_slow = self.swarm.slow_provider && !is_awake;
        let mut choices = self.choices();
        choices.retain(|choice| {
            !is_slow || !matches!(choice, Choice::Foreign { queue: PROVIDER, .. })
        });
        choices
    }

    pub(super) fn choices(&self) -> Vec<Choice> {
        let mut choices = Vec::new();
        for (place, one) in self.places.iter().enumerate() {
            let queues = one.process.iter().flat_map(|process| &process.queues);
            for (queue, (_, jobs)) in queues.enumerate() {
                let transaction = |index| Choice::Transaction { place, queue, index };
                choices.extend((0..jobs.count()).map(transaction));
            }
        }
        for (queue, (_, jobs)) in self.foreign.iter().enumerate() {
            choices.extend((0..jobs.count()).map(|index| Choice::Foreign { queue, index }));
        }
        choices.extend((0..self.surroundings.network.count()).map(Choice::Message));
        choices
    }

    pub(super) fn take(&mut self, choice: Choice) -> Result<(), Violation> {
        match choice {
            Choice::Transaction { place, queue, index } => {
                let fault = self.transaction_fault();
                let process = self.places[place].process.as_ref().expect("it was listed");
                let (name, jobs) = process.queues[queue].clone();
                let number = u64::from(process.number);
                self.run_transaction(&format!("{name:?}"), name, &jobs, index, fault, number)
            }
            Choice::Foreign { queue, index } => {
                let fault = self.transaction_fault();
                let (name, jobs) = self.foreign[queue].clone();
                if queue == PROVIDER && index < self.provider_since.len() {
                    self.provider_since.remove(index);
                }
                self.run_transaction(&format!("{name:?}"), name, &jobs, index, fault, 0)
            }
            Choice::Message(index) => {
                self.deliver(index);
                Ok(())
            }
        }
    }

    pub(super) fn transaction_fault(&mut self) -> StepFault {
        let Swarm { refused_transactions, lost_commits, .. } = self.swarm;
        if self.faults.fires(refused_transactions, 20, &mut self.random) {
            return StepFault::Refused;
        }
        if self.faults.fires(lost_commits, 20, &mut self.random) {
            return StepFault::AnswerLost;
        }
        let is_sabotaged = self.surroundings.sabotage == Some(Sabotage::CommitBeforeAnswer);
        match self.faults.fires(is_sabotaged, 30, &mut self.random) {
            true => StepFault::AnsweredAndUndone,
            false => StepFault::None,
        }
    }

    pub(super) fn run_transaction(
        &mut self,
        who: &str,
        name: DatabaseName,
        jobs: &StepQueue,
        index: usize,
        fault: StepFault,
        number: u64,
    ) -> Result<(), Violation> {
        let report = jobs.run(index, fault);
        let numbers =
            [1, number, name as u64, index as u64, fault as u64, u64::from(report.is_committed)];
        self.trace.step(&numbers, || {
            let kind = match (report.step.is_write, report.is_committed, fault) {
                (false, ..) => "reads",
                (true, true, StepFault::AnswerLost) => "commits, and the answer is lost:",
                (true, true, _) => "commits",
                (true, false, StepFault::Refused) => "cannot be reached for",
                (true, false, StepFault::AnsweredAndUndone) => "answers and forgets",
                (true, false, _) => "undoes",
            };
            format!("{who} {number} {kind} {}", short_name(report.step.name))
        });
        match report.is_committed {
            true => {
                let mut oracle = std::mem::take(&mut self.oracle);
                let verdict = oracle.after_step(name, &self.moment());
                self.oracle = oracle;
                verdict
            }
            false => Ok(()),
        }
    }

    pub(super) fn deliver(&mut self, index: usize) {
        let Swarm { lost_messages, repeated_messages, .. } = self.swarm;
        let network = self.surroundings.network.clone();
        let fate = if self.faults.fires(lost_messages, 60, &mut self.random) {
            MessageFate::Lost
        } else if self.faults.fires(repeated_messages, 80, &mut self.random)
            && network.is_repeatable(index)
        {
            MessageFate::Repeated
        } else {
            MessageFate::Delivered
        };
        let label = network.decide(index, fate);
        self.trace.step(&[2, index as u64, fate as u64], || format!("{label} ({fate:?})"));
    }
}

/// The part of a closure's path that people need.
fn short_name(path: &str) -> String {
    let parts: Vec<&str> =
        path.split("::").filter(|part| !part.contains("{{closure}}") && !part.is_empty()).collect();
    parts[parts.len().saturating_sub(3)..].join("::")
}

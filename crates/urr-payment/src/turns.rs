//! Who wants the same order at the same time waits here, so that all get the answer of the first.
//!
//! It is only for the answer: what must happen once, the database sees to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

#[derive(Debug, Default)]
pub struct Turns(Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>);

/// One's turn. It ends when dropped.
pub struct Turn<'a> {
    turns: &'a Turns,
    order_id: String,
    held: Option<OwnedMutexGuard<()>>,
}

impl Turns {
    pub async fn wait(&self, order_id: &str) -> Turn<'_> {
        let mut turn = Turn { turns: self, order_id: order_id.to_owned(), held: None };
        let lock = {
            let mut orders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(orders.entry(order_id.to_owned()).or_default())
        };
        turn.held = Some(lock.lock_owned().await);
        turn
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.held = None;
        let mut orders = self.turns.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody else waits: the map and nothing more has it.
        if orders.get(&self.order_id).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            orders.remove(&self.order_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_is_kept_of_an_order_that_nobody_waits_for() {
        let turns = Turns::default();
        let first = turns.wait("a").await;
        let other = turns.wait("b").await;
        assert_eq!(turns.0.lock().unwrap().len(), 2);
        drop((first, other));
        assert!(turns.0.lock().unwrap().is_empty());
        drop(turns.wait("a").await);
        assert!(turns.0.lock().unwrap().is_empty());
    }
}

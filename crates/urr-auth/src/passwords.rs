//! Hashing and comparing passwords with Argon2id, in a bounded pool.
//!
//! A comparison costs tens of milliseconds and 19 MiB on purpose. So at most half of the processors
//! do it, a few requests wait, and the others get an error at once: many logins must not take the
//! processors from users who are buying.

pub mod rules;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use argon2::password_hash::PasswordVerifier;
use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Params, PasswordHasher, Version};
use tokio::sync::Semaphore;
use urr_kernel::Secret;

use crate::passwords::rules::Password;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PasswordCost {
    pub memory_kib: u32,
    pub passes: u32,
    pub lanes: u32,
}

impl Default for PasswordCost {
    /// The minimum that OWASP recommends; 22 ms on a processor of 2024.
    fn default() -> PasswordCost {
        PasswordCost { memory_kib: 19_456, passes: 2, lanes: 1 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many passwords wait to be compared")]
pub struct HashingBusy;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PasswordComparison {
    pub matches: bool,
    /// The stored hash has another cost than the settings.
    pub is_outdated: bool,
}

/// The pool. Clones share it.
#[derive(Clone)]
pub struct PasswordPool(Arc<Inner>);

struct Inner {
    /// One permit per running or waiting hash.
    admitted: Arc<Semaphore>,
    /// One permit per running hash.
    running: Arc<Semaphore>,
    admitted_max: usize,
    running_max: usize,
    cost: PasswordCost,
    compared: AtomicU64,
    rejected: AtomicU64,
}

impl PasswordPool {
    pub fn new(cost: PasswordCost, parallel_max: usize, waiting_max: usize) -> PasswordPool {
        let parallel = parallel_max.max(1);
        PasswordPool(Arc::new(Inner {
            admitted: Arc::new(Semaphore::new(parallel + waiting_max)),
            running: Arc::new(Semaphore::new(parallel)),
            admitted_max: parallel + waiting_max,
            running_max: parallel,
            cost,
            compared: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
        }))
    }

    pub async fn hash(&self, password: Password) -> Result<String, HashingBusy> {
        let cost = self.0.cost;
        self.run(move || hash(password.expose(), cost)).await
    }

    /// Compares with a stored hash. Without one it compares with a dummy hash, so that an address
    /// without an account takes as long as one with an account.
    pub async fn compare(
        &self,
        candidate: Secret,
        stored: Option<String>,
    ) -> Result<PasswordComparison, HashingBusy> {
        let cost = self.0.cost;
        let compared = self
            .run(move || match stored {
                Some(stored) => compare(candidate.expose(), &stored, cost),
                None => {
                    let PasswordComparison { .. } =
                        compare(candidate.expose(), &dummy_hash(cost), cost);
                    PasswordComparison { matches: false, is_outdated: false }
                }
            })
            .await?;
        self.0.compared.fetch_add(1, Ordering::Relaxed);
        Ok(compared)
    }

    /// How many comparisons were made.
    pub fn compared(&self) -> u64 {
        self.0.compared.load(Ordering::Relaxed)
    }

    /// How many were rejected because too many waited.
    pub fn rejected(&self) -> u64 {
        self.0.rejected.load(Ordering::Relaxed)
    }

    /// How many are being hashed.
    pub fn running(&self) -> usize {
        self.0.running_max - self.0.running.available_permits()
    }

    /// How many wait to be hashed.
    pub fn waiting(&self) -> usize {
        // The two semaphores are not read at the same time.
        let inside = self.0.admitted_max - self.0.admitted.available_permits();
        inside.saturating_sub(self.running())
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, HashingBusy> {
        let admitted = Arc::clone(&self.0.admitted).try_acquire_owned().map_err(|_| {
            self.0.rejected.fetch_add(1, Ordering::Relaxed);
            HashingBusy
        })?;
        let running = Arc::clone(&self.0.running).acquire_owned().await;
        let running = running.expect("the semaphore is never closed");
        // The work holds the permits, because it goes on when the caller has gone away.
        let working = tokio::task::spawn_blocking(move || {
            let done = work();
            drop((admitted, running));
            done
        });
        Ok(working.await.expect("hashing does not panic"))
    }
}

fn argon2(cost: PasswordCost) -> Argon2<'static> {
    let params = Params::new(cost.memory_kib, cost.passes, cost.lanes, None);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params.expect("the cost is within bounds"))
}

fn hash(password: &str, cost: PasswordCost) -> String {
    let mut salt = [0_u8; 16];
    getrandom::fill(&mut salt).expect("the operating system has randomness");
    let hash = argon2(cost).hash_password_with_salt(password.as_bytes(), &salt);
    hash.expect("a bounded password can be hashed").to_string()
}

fn compare(candidate: &str, stored: &str, cost: PasswordCost) -> PasswordComparison {
    // The hash of an imported account, which the first login replaces.
    if stored.starts_with("$2") {
        let matches = bcrypt::verify(candidate, stored).unwrap_or(false);
        return PasswordComparison { matches, is_outdated: true };
    }
    let Ok(hash) = PasswordHash::new(stored) else {
        tracing::error!("a stored password hash has an unknown format");
        return PasswordComparison { matches: false, is_outdated: true };
    };
    // The cost is read from the hash itself.
    let matches = Argon2::default().verify_password(candidate.as_bytes(), &hash).is_ok();
    let ours = argon2(cost);
    let is_outdated = Params::try_from(&hash).is_ok_and(|params| {
        let made = (params.m_cost(), params.t_cost(), params.p_cost());
        made != (ours.params().m_cost(), ours.params().t_cost(), ours.params().p_cost())
    });
    PasswordComparison { matches, is_outdated }
}

/// A hash of the right form and cost that no password matches.
fn dummy_hash(cost: PasswordCost) -> String {
    let PasswordCost { memory_kib, passes, lanes } = cost;
    let (salt, output) = ("A".repeat(22), "A".repeat(43));
    format!("$argon2id$v=19$m={memory_kib},t={passes},p={lanes}${salt}${output}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::email::Email;

    const CHEAP: PasswordCost = PasswordCost { memory_kib: 8, passes: 1, lanes: 1 };

    fn password(text: &str) -> Password {
        Password::parse(text, &Email::parse("a@b").unwrap()).unwrap()
    }

    async fn compare_with(stored: &str, candidate: &str) -> (bool, bool) {
        let pool = PasswordPool::new(CHEAP, 1, 1);
        let compared = pool.compare(Secret::new(candidate), Some(stored.to_owned())).await;
        let PasswordComparison { matches, is_outdated } = compared.unwrap();
        (matches, is_outdated)
    }

    #[tokio::test]
    async fn only_the_same_password_matches() {
        let pool = PasswordPool::new(CHEAP, 1, 1);
        let hash = pool.hash(password("correct horse")).await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=8,t=1,p=1$"), "{hash}");
        assert_eq!(compare_with(&hash, "correct horse").await, (true, false));
        assert_eq!(compare_with(&hash, "correct horsf").await, (false, false));
        let again = pool.hash(password("correct horse")).await.unwrap();
        assert_ne!(again, hash, "every hash has its own salt");
    }

    #[tokio::test]
    async fn the_usual_cost_is_what_is_advised() {
        let pool = PasswordPool::new(PasswordCost::default(), 1, 1);
        let hash = pool.hash(password("correct horse")).await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert_eq!(compare_with(&hash, "correct horse").await, (true, true), "not the cost here");
    }

    #[tokio::test]
    async fn hashes_from_elsewhere_are_accepted_and_called_outdated() {
        // From the reference implementation.
        let known = "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW";
        assert_eq!(compare_with(known, "U*U").await, (true, true));
        let made = bcrypt::hash("correct horse", 4).unwrap();
        assert_eq!(compare_with(&made, "correct horse").await, (true, true));
        assert_eq!(compare_with(&made, "correct horsf").await, (false, true));
        for broken in ["", "$2b$", "$argon2id$v=19$m=1", "plain"] {
            assert!(!compare_with(broken, "plain").await.0, "{broken}");
        }
    }

    #[tokio::test]
    async fn d_15_nobodys_hash_costs_a_comparison_and_matches_nothing() {
        let nobody = dummy_hash(CHEAP);
        assert!(PasswordHash::new(&nobody).is_ok(), "otherwise it would be rejected at once");
        assert_eq!(compare_with(&nobody, "").await, (false, false));
        let pool = PasswordPool::new(CHEAP, 1, 1);
        let compared = pool.compare(Secret::new("x"), None).await.unwrap();
        assert_eq!((compared.matches, pool.compared()), (false, 1));
    }

    #[tokio::test]
    async fn those_beyond_the_bound_are_told_at_once() {
        let pool = PasswordPool::new(CHEAP, 1, 1);
        let (release, wait) = std::sync::mpsc::channel::<()>();
        let runs = tokio::spawn({
            let pool = pool.clone();
            async move { pool.run(move || wait.recv()).await }
        });
        let waits = tokio::spawn({
            let pool = pool.clone();
            async move { pool.run(|| ()).await }
        });
        while pool.0.admitted.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!((pool.running(), pool.waiting(), pool.rejected()), (1, 1, 0));
        assert_eq!(pool.run(|| ()).await, Err(HashingBusy));
        assert_eq!(pool.rejected(), 1);
        // A caller that leaves while waiting gives up its permit; a running one keeps it to the end.
        waits.abort();
        assert!(waits.await.is_err());
        runs.abort();
        assert!(runs.await.is_err());
        assert_eq!(pool.0.admitted.available_permits(), 1);
        assert_eq!((pool.running(), pool.waiting()), (1, 0));
        release.send(()).unwrap();
        assert_eq!(pool.run(|| ()).await, Ok(()));
    }
}

//! Redis, as everything in URR uses it: Lua scripts on one server or on a Cluster.
//!
//! Redis makes things fast and shares them between replicas; it never decides what must be right
//! (the databases do). So every call here is short and may fail, and callers say what happens then.
//!
//! - [`Redis::run`] runs a [`Script`] by its hash, and sends its text when the server does not know
//!   it (it forgets scripts when it restarts).
//! - A call that gets no answer in time ends with [`RedisError::Timeout`]. It may have executed,
//!   now or later. On a Cluster a call whose connection breaks is sent again, so it may even execute
//!   twice. Write scripts so that a repetition does no harm.
//! - After a few failures in a row a breaker opens: calls are refused at once, and a task in the
//!   background tries once a second until Redis works again. A dead Redis costs microseconds, not
//!   a timeout per request. A Cluster has a breaker per range of slots, so that one dead node does
//!   not stop the others.
//! - The keys of one script share a hash tag ([`hash_tag`]), on a single server too: what works in
//!   development works on a Cluster (F-5).
//!
//! Deliberately absent: locks (a Redis lock proves nothing), pipelines, and transactions.

mod breaker;
mod connection;
mod error;
mod hash_tag;
mod script;

use std::sync::{Arc, LazyLock, Weak};
use std::time::Duration;

use redis::{ErrorKind, ServerErrorKind};
pub use redis::{FromRedisValue, ToRedisArgs};
use urr_kernel::Secret;
use urr_tls::{IdentityFiles, TrustFiles};

use self::breaker::RedisBreaker;
use self::connection::{ConnectionSource, SharedConnection};
pub use self::error::RedisError;
use self::error::{CommandFailure, FailureScope};
pub use self::hash_tag::hash_tag;
use self::hash_tag::slot_of;
pub use self::script::Script;

/// The address of Redis: `redis://[user][:password@]host:port[/database]`, or `rediss://` for TLS.
#[derive(Debug, Clone)]
pub enum RedisTopology {
    Single(Secret),
    /// Some of the nodes; the others are learned from them.
    Cluster(Vec<Secret>),
}

/// How long to wait, and when to stop trying.
#[derive(Debug, Clone)]
pub struct RedisOptions {
    pub connection_timeout: Duration,
    /// For the whole answer, on a Cluster with all redirections.
    pub response_timeout: Duration,
    /// This many failures in a row open the breaker.
    pub failures_max: u32,
    /// How long calls are refused before the first attempt to close the breaker, and before each
    /// further one.
    pub open_for: Duration,
    /// Who signs the certificates of `rediss://` servers.
    pub trust: TrustFiles,
    /// Shown to servers that ask for a certificate.
    pub identity: Option<IdentityFiles>,
}

impl Default for RedisOptions {
    fn default() -> RedisOptions {
        RedisOptions {
            connection_timeout: Duration::from_secs(1),
            response_timeout: Duration::from_millis(500),
            failures_max: 5,
            open_for: Duration::from_secs(1),
            trust: TrustFiles::WebRoots,
            identity: None,
        }
    }
}

/// For scripts that have only keys.
pub const NO_ARGUMENTS: &[&str] = &[];

/// A Cluster has 16,384 slots. A node serves few long ranges of them, so 64 breakers of 256 slots
/// each keep a dead node's failures from those of the others.
const SLOTS_PER_BREAKER: usize = 256;
const CLUSTER_BREAKERS: usize = 64;

/// A handle on Redis. Clones share the connection and the breakers.
#[derive(Clone)]
pub struct Redis(Arc<Inner>);

struct Inner {
    source: ConnectionSource,
    /// One for a single server, [`CLUSTER_BREAKERS`] for a Cluster.
    breakers: Vec<RedisBreaker>,
    options: RedisOptions,
}

impl Redis {
    /// Connects with the usual timeouts; see [`Redis::connect_with`].
    pub async fn connect(topology: &RedisTopology) -> Result<Redis, RedisError> {
        Redis::connect_with(topology, RedisOptions::default()).await
    }

    /// Connects. Only an address that makes no sense is an error: a Redis that is down now may come
    /// back. A program that needs it at start calls [`Redis::ping`].
    pub async fn connect_with(
        topology: &RedisTopology,
        options: RedisOptions,
    ) -> Result<Redis, RedisError> {
        let source = ConnectionSource::new(topology, &options)?;
        let breakers = match topology {
            RedisTopology::Single(_) => 1,
            RedisTopology::Cluster(_) => CLUSTER_BREAKERS,
        };
        let breakers = (0..breakers).map(|_| RedisBreaker::default()).collect();
        let redis = Redis(Arc::new(Inner { source, breakers, options }));
        if let Err(failure) = redis.0.source.live().await {
            tracing::warn!(error = failure.cause, "Redis cannot be reached yet");
        }
        Ok(redis)
    }

    /// Whether Redis answers now; on a Cluster, every primary. It asks even when the breaker is
    /// open, so it can take as long as both timeouts.
    pub async fn ping(&self) -> Result<(), RedisError> {
        let live = self.0.source.live().await.map_err(|failure| failure.error)?;
        let answer = live.send(&redis::cmd("PING")).await;
        answer.map(drop).map_err(|error| self.0.classify(&live, &error).error)
    }

    /// The same for people: the error says why there is no connection.
    pub async fn reach(&self) -> Result<(), String> {
        self.0.source.live().await.map_err(|failure| failure.cause)?;
        self.ping().await.map_err(|error| error.to_string())
    }

    /// Whether calls are refused at the moment, on a Cluster for some of the keys at least.
    pub fn is_refusing(&self) -> bool {
        self.0.breakers.iter().any(RedisBreaker::is_open)
    }

    /// Runs a script. Arguments are a value, a slice or a tuple of values, or [`NO_ARGUMENTS`].
    ///
    /// At least one key is needed, and all must be in one slot; anything else is our own bug.
    pub async fn run<T: FromRedisValue>(
        &self,
        script: &Script,
        keys: &[&str],
        arguments: impl ToRedisArgs,
    ) -> Result<T, RedisError> {
        let number = self.0.breaker_of(keys);
        let breaker = &self.0.breakers[number];
        if breaker.is_open() {
            return Err(RedisError::Unavailable);
        }
        let outcome = self.0.run_admitted(script, keys, &arguments).await;
        match &outcome {
            Err(failure) if failure.scope != FailureScope::None => {
                if breaker.failed(self.0.options.failures_max) {
                    let error = &failure.cause;
                    tracing::warn!(error, "Redis fails; calls are refused until it answers again");
                    tokio::spawn(recover(Arc::downgrade(&self.0), number, keys[0].to_owned()));
                }
            }
            Ok(_) | Err(_) => breaker.succeeded(),
        }
        outcome.map_err(|failure| failure.error)
    }
}

/// Closes a breaker when a script runs again where this key is. Ends with the last handle.
async fn recover(inner: Weak<Inner>, number: usize, key: String) {
    static TRY: LazyLock<Script> = LazyLock::new(|| Script::new("return 1"));
    while let Some(open_for) = inner.upgrade().map(|inner| inner.options.open_for) {
        tokio::time::sleep(open_for).await;
        let Some(inner) = inner.upgrade() else { return };
        let outcome = inner.run_admitted::<i64>(&TRY, &[&key], &NO_ARGUMENTS).await;
        if outcome.map_or_else(|failure| failure.scope == FailureScope::None, |_| true) {
            inner.breakers[number].close();
            tracing::info!("Redis answers again");
            return;
        }
        inner.source.replace_failing().await;
    }
}

impl Inner {
    /// The number of the breaker that these keys go through.
    fn breaker_of(&self, keys: &[&str]) -> usize {
        let (first, others) = keys.split_first().expect("a script names its keys");
        let slot = slot_of(first);
        let together = others.iter().all(|key| slot_of(key) == slot);
        assert!(together, "the keys of a script share a hash tag: {keys:?}");
        if self.breakers.len() == 1 { 0 } else { usize::from(slot) / SLOTS_PER_BREAKER }
    }

    async fn run_admitted<T: FromRedisValue>(
        &self,
        script: &Script,
        keys: &[&str],
        arguments: &impl ToRedisArgs,
    ) -> Result<T, CommandFailure> {
        let live = self.source.live().await?;
        let unknown = ErrorKind::Server(ServerErrorKind::NoScript);
        let answer = match live.send(&script.by_hash(keys, arguments)).await {
            Err(error) if error.kind() == unknown => {
                live.send(&script.by_text(keys, arguments)).await
            }
            answer => answer,
        };
        let answer = answer.map_err(|error| self.classify(&live, &error))?;
        T::from_redis_value(answer).map_err(CommandFailure::to_understand)
    }

    /// Classifies an error, and drops the connection if it is broken.
    fn classify(&self, live: &SharedConnection, error: &redis::RedisError) -> CommandFailure {
        let failure = CommandFailure::after_sending(error);
        if failure.scope == FailureScope::Connection {
            self.source.drop_broken(live);
        }
        failure
    }
}

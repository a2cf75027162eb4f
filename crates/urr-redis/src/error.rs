//! What can go wrong with Redis, and what each error of the client library means.

use redis::{ErrorKind, ServerErrorKind};

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RedisError {
    /// Nothing was executed: Redis cannot be reached, is not ready, or the breaker is open.
    #[error("Redis is not available")]
    Unavailable,
    /// No answer: the time was up or the connection broke after sending. It may have executed, or
    /// may yet; only a script that does no harm when repeated may be tried again.
    #[error("Redis did not answer; the call may have executed")]
    Timeout,
    /// Redis answered that it will not do this; trying again will not help.
    #[error("Redis refused: {0}")]
    Rejected(String),
}

/// What a failed call tells about Redis, apart from the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureScope {
    /// It works: it answered, if only with a refusal.
    None,
    /// It is not able to serve now, but the connection may be.
    Server,
    /// The connection is broken.
    Connection,
}

/// A failed call.
#[derive(Debug)]
pub(crate) struct CommandFailure {
    pub error: RedisError,
    pub scope: FailureScope,
    /// For the log.
    pub cause: String,
}

impl CommandFailure {
    /// No connection could be made, so nothing was sent.
    pub fn to_connect(cause: impl ToString) -> CommandFailure {
        CommandFailure {
            error: RedisError::Unavailable,
            scope: FailureScope::Server,
            cause: cause.to_string(),
        }
    }

    /// The script returned something that its caller cannot read: our own bug.
    pub fn to_understand(cause: impl ToString) -> CommandFailure {
        let cause = cause.to_string();
        CommandFailure {
            error: RedisError::Rejected(cause.clone()),
            scope: FailureScope::None,
            cause,
        }
    }

    pub fn after_sending(error: &redis::RedisError) -> CommandFailure {
        let cause = error.to_string();
        let (error, scope) = match error.kind() {
            ErrorKind::Io if error.is_timeout() => (RedisError::Timeout, FailureScope::Server),
            ErrorKind::Io if error.is_connection_refusal() => {
                (RedisError::Unavailable, FailureScope::Connection)
            }
            ErrorKind::Io | ErrorKind::Parse => (RedisError::Timeout, FailureScope::Connection),
            ErrorKind::ClusterConnectionNotFound => (RedisError::Unavailable, FailureScope::Server),
            ErrorKind::AuthenticationFailed => {
                (RedisError::Rejected(cause.clone()), FailureScope::Connection)
            }
            // The server we are connected to is a replica now: look for the primary anew.
            ErrorKind::Server(ServerErrorKind::ReadOnly) => {
                (RedisError::Unavailable, FailureScope::Connection)
            }
            // Redirections without end: the node that has the key is not there.
            ErrorKind::Server(
                ServerErrorKind::Moved
                | ServerErrorKind::Ask
                | ServerErrorKind::BusyLoading
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::MasterDown
                | ServerErrorKind::TryAgain,
            ) => (RedisError::Unavailable, FailureScope::Server),
            // Another script has been running for too long.
            _ if error.code() == Some("BUSY") => (RedisError::Unavailable, FailureScope::Server),
            _ => (RedisError::Rejected(cause.clone()), FailureScope::None),
        };
        CommandFailure { error, scope, cause }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use redis::parse_redis_value;

    use super::*;

    fn check_answer(answer: &str, error: RedisError, scope: FailureScope) {
        let value = parse_redis_value(format!("{answer}\r\n").as_bytes()).unwrap();
        let failure = CommandFailure::after_sending(&value.extract_error().unwrap_err());
        assert_eq!((failure.error, failure.scope), (error, scope), "{answer}");
    }

    #[test]
    fn answers_that_pass_are_unavailability_and_others_are_refusals() {
        for answer in [
            "-LOADING Redis is loading the dataset in memory",
            "-CLUSTERDOWN The cluster is down",
            "-TRYAGAIN Multiple keys request during rehashing of slot",
            "-MASTERDOWN ConnectionSource with MASTER is down",
            "-MOVED 98 127.0.0.1:7001",
            "-BUSY Redis is busy running a script.",
        ] {
            check_answer(answer, RedisError::Unavailable, FailureScope::Server);
        }
        check_answer(
            "-READONLY You can't write against a read only replica.",
            RedisError::Unavailable,
            FailureScope::Connection,
        );
        let value = parse_redis_value(b"-OOM command not allowed\r\n").unwrap();
        let failure = CommandFailure::after_sending(&value.extract_error().unwrap_err());
        assert!(matches!(failure.error, RedisError::Rejected(text) if text.contains("OOM")));
        assert_eq!(failure.scope, FailureScope::None);
    }

    #[test]
    fn a_broken_connection_does_not_tell_whether_the_call_executed() {
        let broken = io::Error::from(io::ErrorKind::BrokenPipe);
        let failure = CommandFailure::after_sending(&broken.into());
        assert_eq!((failure.error, failure.scope), (RedisError::Timeout, FailureScope::Connection));
    }
}

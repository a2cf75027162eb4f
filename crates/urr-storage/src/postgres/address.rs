//! Where the servers of a database are: one, or a primary and its standbys in any order.
//!
//! The driver's own search for a server that can write asks whether a session may only read, which
//! every session of ours may at first. So the servers are asked here.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config, NoTls};
use tokio_rustls::rustls::ClientConfig;
use urr_kernel::error_chain;
use urr_tls::TlsError;

use super::connection::is_passing;
use super::tls::{PostgresTlsConnector, TlsParameters};
use crate::StorageError;

/// A server that does not answer in this time is taken for absent.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A peer that acknowledges nothing for this long is dead.
const PEER_SILENT_MAX: Duration = Duration::from_secs(10);

/// The number that each promotion raises, in letters of one length; none of a standby.
const TIMELINE: &str = "select case when pg_is_in_recovery() then null \
                        else substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) end";

/// The servers of a database and how connections to them are protected.
pub(crate) struct PostgresServerAddress {
    servers: Vec<Config>,
    target: SessionTarget,
    tls: Option<Arc<ClientConfig>>,
}

/// Which server will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionTarget {
    /// The only one, whatever it can do.
    Any,
    /// One that can write.
    Primary,
}

type ConnectionTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Why there is no connection.
#[derive(Debug)]
pub(crate) struct ConnectFailure {
    /// Of each server.
    reasons: Vec<String>,
    /// Whether a server has answered with a refusal that will be the same in a minute.
    pub is_refused: bool,
}

impl ConnectFailure {
    pub fn into_error(self) -> StorageError {
        let reasons = self.reasons.join("; ");
        StorageError::Unavailable(format!("cannot connect to PostgreSQL at {reasons}"))
    }
}

impl PostgresServerAddress {
    /// Files are read now: replaced ones count from the next connection on.
    pub fn parse(url: &str) -> Result<PostgresServerAddress, String> {
        let (url, parameters) = TlsParameters::take(url)?;
        let (urls, target) = servers_of(&url)?;
        let tls = parameters.client()?;
        let mut servers = Vec::with_capacity(urls.len());
        for url in urls {
            let mut config: Config = url.parse().map_err(|error| format!("{error}"))?;
            if config.get_hosts().len() != 1 {
                return Err("name each host before the path, several with commas between".into());
            }
            config
                .ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable })
                .application_name("urr")
                .connect_timeout(CONNECT_TIMEOUT)
                .tcp_user_timeout(PEER_SILENT_MAX)
                .keepalives_idle(PEER_SILENT_MAX)
                .keepalives_interval(Duration::from_secs(2))
                .keepalives_retries(3);
            servers.push(config);
        }
        let tls = tls.map(|tls| urr_tls::client_config(&tls).map(Arc::new)).transpose();
        let tls = tls.map_err(|error: TlsError| error.to_string())?;
        Ok(PostgresServerAddress { servers, target, tls })
    }

    /// What a session begins with.
    pub fn set_options(&mut self, options: &str) {
        for config in &mut self.servers {
            config.options(options);
        }
    }

    /// The server; of several that can write, the one that was promoted last. An old primary that
    /// was started again by mistake is not sold from while its successor answers.
    pub async fn connect(&self) -> Result<Client, ConnectFailure> {
        let mut failure = ConnectFailure { reasons: Vec::new(), is_refused: false };
        let mut newest: Option<(String, Client)> = None;
        for config in &self.servers {
            let connecting = self.connect_to(config);
            let reason = match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
                Ok(Ok((Some(timeline), client))) => {
                    if newest.as_ref().is_none_or(|(known, _)| *known < timeline) {
                        newest = Some((timeline, client));
                    }
                    continue;
                }
                Ok(Ok((None, _standby))) => "it is a standby, which only reads".to_owned(),
                Ok(Err(error)) => {
                    failure.is_refused |= error.code().is_some_and(|code| !is_passing(code));
                    explain(&error)
                }
                Err(_) => "no answer in time".to_owned(),
            };
            failure.reasons.push(format!("{}: {reason}", place_of(config)));
        }
        newest.map(|(_, client)| client).ok_or(failure)
    }

    /// The client with the timeline of its server, which nobody needs of an only server.
    async fn connect_to(
        &self,
        config: &Config,
    ) -> Result<(Option<String>, Client), tokio_postgres::Error> {
        let (client, connection): (Client, ConnectionTask) = match &self.tls {
            None => {
                let (client, connection) = config.connect(NoTls).await?;
                (client, Box::pin(async move { drop(connection.await) }))
            }
            Some(tls) => {
                let connector = PostgresTlsConnector::new(Arc::clone(tls));
                let (client, connection) = config.connect(connector).await?;
                (client, Box::pin(async move { drop(connection.await) }))
            }
        };
        // It moves the bytes. How it ends, the client tells with every statement.
        tokio::spawn(connection);
        if self.target == SessionTarget::Any {
            return Ok((Some(String::new()), client));
        }
        let timeline = client.query_one(TIMELINE, &[]).await?.try_get(0)?;
        Ok((timeline, client))
    }
}

/// The URL of each server that a URL names, and which of them will do.
pub(super) fn servers_of(url: &str) -> Result<(Vec<String>, SessionTarget), String> {
    let (url, target) = take_target(url);
    let authority_start = url.find("://").map_or(0, |at| at + "://".len());
    let authority_end =
        url[authority_start..].find('/').map_or(url.len(), |at| at + authority_start);
    let hosts_start = url[..authority_end].rfind('@').map_or(authority_start, |at| at + 1);
    let hosts_end = url[hosts_start..].find(['/', '?']).map_or(url.len(), |at| at + hosts_start);
    let (login, rest) = (&url[..hosts_start], &url[hosts_end..]);
    let hosts: Vec<&str> = url[hosts_start..hosts_end].split(',').collect();
    let target = match (target.as_deref(), hosts.len()) {
        (None | Some("any"), 1) => SessionTarget::Any,
        (None | Some("read-write" | "primary"), _) => SessionTarget::Primary,
        (Some("any"), _) => {
            return Err("of several servers only the primary can be sold from; set \
                        target_session_attrs to read-write"
                .to_owned());
        }
        (Some(other), _) => {
            return Err(format!(
                "target_session_attrs {other:?} is not known here; use read-write or any"
            ));
        }
    };
    let urls = hosts.iter().map(|host| format!("{login}{host}{rest}")).collect();
    Ok((urls, target))
}

/// The URL without `target_session_attrs`, and its value.
fn take_target(url: &str) -> (String, Option<String>) {
    const NAME: &str = "target_session_attrs=";
    let Some((place, query)) = url.rsplit_once('?') else { return (url.to_owned(), None) };
    let (ours, others): (Vec<&str>, Vec<&str>) =
        query.split('&').partition(|pair| pair.starts_with(NAME));
    let Some(value) = ours.last() else { return (url.to_owned(), None) };
    let mark = if others.is_empty() { "" } else { "?" };
    (format!("{place}{mark}{}", others.join("&")), Some(value[NAME.len()..].to_owned()))
}

/// Where we tried to connect: the password stays out.
fn place_of(config: &Config) -> String {
    let hosts: Vec<String> = config.get_hosts().iter().map(|host| format!("{host:?}")).collect();
    let user = config.get_user().unwrap_or("?");
    format!("{} port {:?} as {user}", hosts.join(","), config.get_ports())
}

fn explain(error: &tokio_postgres::Error) -> String {
    let mut reason =
        error.as_db_error().map_or_else(|| error_chain(error), |db| db.message().to_owned());
    if urr_tls::is_certificate_refused(error) {
        reason.push_str("; sslrootcert names the authority, and the host is a name of the server");
    }
    reason
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_may_name_several_servers() {
        let check = |url: &str, expected: &[&str], target: SessionTarget| {
            let expected = expected.iter().map(|url| (*url).to_owned()).collect();
            assert_eq!(servers_of(url), Ok((expected, target)), "{url}");
        };
        let (any, primary) = (SessionTarget::Any, SessionTarget::Primary);
        check("postgres://h/d", &["postgres://h/d"], any);
        check("postgres://h/d?target_session_attrs=any", &["postgres://h/d"], any);
        check("postgres://h/d?target_session_attrs=read-write", &["postgres://h/d"], primary);
        check(
            "postgres://u:p,@a:1,b:2/d?x=1,2&target_session_attrs=primary&y=3",
            &["postgres://u:p,@a:1/d?x=1,2&y=3", "postgres://u:p,@b:2/d?x=1,2&y=3"],
            primary,
        );
        check("postgres://[::1]:1,b", &["postgres://[::1]:1", "postgres://b"], primary);
        check("postgres://a,b?x=1", &["postgres://a?x=1", "postgres://b?x=1"], primary);
    }

    #[test]
    fn a_url_that_could_end_at_a_standby_is_refused() {
        for (url, reason) in [
            ("postgres://a,b/d?target_session_attrs=any", "read-write"),
            ("postgres://a/d?target_session_attrs=standby", "\"standby\""),
            ("postgres://a,/d", "before the path"),
            ("postgres://a/d?host=b,c", "before the path"),
        ] {
            let refusal = PostgresServerAddress::parse(url).err().expect("it is refused");
            assert!(refusal.contains(reason), "{url}: {refusal}");
        }
    }
}

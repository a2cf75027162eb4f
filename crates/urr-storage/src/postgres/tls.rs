//! TLS to PostgreSQL, as the parameters of the URL say: `sslmode`, `sslrootcert`, `sslcert` and
//! `sslkey`, with the meaning that `libpq` gives them.
//!
//! The driver knows only whether TLS is required. What is verified is decided here, so these
//! parameters are taken out of the URL before the driver reads it.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use urr_kernel::percent;
use urr_tls::{ClientTls, IdentityFiles, ServerCheck, TrustFiles};

use super::address::servers_of;

/// What a URL says about the protection of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PostgresProtection {
    /// Whoever listens on the way can read everything but the password.
    Plain,
    /// Encrypted to whoever answers.
    Unverified,
    Verified,
}

/// How a database URL protects its connection; the error says what is wrong with it.
pub fn postgres_protection(url: &str) -> Result<PostgresProtection, String> {
    let (url, parameters) = TlsParameters::take(url)?;
    servers_of(&url)?;
    Ok(match parameters.client()? {
        None => PostgresProtection::Plain,
        Some(tls) if tls.check == ServerCheck::Nothing => PostgresProtection::Unverified,
        Some(_) => PostgresProtection::Verified,
    })
}

/// The parameters of a URL that are about TLS.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TlsParameters {
    mode: Option<String>,
    root: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl TlsParameters {
    /// The URL without these parameters, and the parameters.
    pub(super) fn take(url: &str) -> Result<(String, TlsParameters), String> {
        let mut found = TlsParameters::default();
        let authority_start = url.find("://").map_or(0, |at| at + "://".len());
        let authority_end =
            url[authority_start..].find('/').map_or(url.len(), |at| at + authority_start);
        let host_start = url[..authority_end].rfind('@').map_or(authority_start, |at| at + 1);
        let Some(query_start) = url[host_start..].find('?').map(|at| at + host_start) else {
            return Ok((url.to_owned(), found));
        };
        let mut others = Vec::new();
        for pair in url[query_start + 1..].split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = || percent::decode(value).ok_or_else(|| format!("{name} is not encoded"));
            match name {
                "sslmode" => found.mode = Some(value()?),
                "sslrootcert" => found.root = Some(value()?.into()),
                "sslcert" => found.certificate = Some(value()?.into()),
                "sslkey" => found.key = Some(value()?.into()),
                _ => others.push(pair),
            }
        }
        let mark = if others.is_empty() { "" } else { "?" };
        Ok((format!("{}{mark}{}", &url[..query_start], others.join("&")), found))
    }

    /// None: without TLS.
    pub(super) fn client(self) -> Result<Option<ClientTls>, String> {
        let identity = match (self.certificate, self.key) {
            (Some(certificate), Some(key)) => Some(IdentityFiles { certificate, key }),
            (None, None) => None,
            _ => return Err("sslcert and sslkey belong together; give both or none".to_owned()),
        };
        let has_root = self.root.is_some();
        let check = match self.mode.as_deref() {
            // A file that nobody looks at would give a false sense of safety.
            None | Some("disable") if has_root || identity.is_some() => {
                return Err("certificates are given, and sslmode does not use them; set it to \
                            verify-full"
                    .to_owned());
            }
            None | Some("disable") => return Ok(None),
            // As in libpq: whoever names an authority wants it to be checked.
            Some("require") if has_root => ServerCheck::Issuer,
            Some("require") => ServerCheck::Nothing,
            Some("verify-ca") => ServerCheck::Issuer,
            Some("verify-full") => ServerCheck::Full,
            Some(other) => {
                return Err(format!(
                    "sslmode {other:?} is not known here; use disable, require, verify-ca or \
                     verify-full"
                ));
            }
        };
        let trust = self.root.map_or(TrustFiles::WebRoots, TrustFiles::File);
        Ok(Some(ClientTls { check, trust, identity }))
    }
}

/// Makes TLS connections for the driver.
#[derive(Clone)]
pub(super) struct PostgresTlsConnector(Arc<ClientConfig>);

impl PostgresTlsConnector {
    pub(super) fn new(config: Arc<ClientConfig>) -> PostgresTlsConnector {
        PostgresTlsConnector(config)
    }
}

impl MakeTlsConnect<Socket> for PostgresTlsConnector {
    type Stream = PostgresTlsStream;
    type TlsConnect = PostgresTlsHandshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<PostgresTlsHandshake> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(PostgresTlsHandshake { config: Arc::clone(&self.0), name })
    }
}

pub(super) struct PostgresTlsHandshake {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl TlsConnect<Socket> for PostgresTlsHandshake {
    type Stream = PostgresTlsStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<PostgresTlsStream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let connecting = TlsConnector::from(self.config).connect(self.name, socket);
            connecting.await.map(|stream| PostgresTlsStream(Box::new(stream)))
        })
    }
}

pub(super) struct PostgresTlsStream(Box<TlsStream<Socket>>);

impl tokio_postgres::tls::TlsStream for PostgresTlsStream {
    /// Verifying the certificate does what channel binding would do.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for PostgresTlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for PostgresTlsStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(query: &str) -> Result<Option<ClientTls>, String> {
        TlsParameters::take(&format!("postgres://h/d{query}")).unwrap().1.client()
    }

    #[test]
    fn the_parameters_are_taken_out_and_the_others_stay() {
        let check = |url: &str, expected: &str| {
            assert_eq!(TlsParameters::take(url).unwrap().0, expected, "{url}");
        };
        check("postgres://h/d", "postgres://h/d");
        check("postgres://u:p?q@h/d?sslmode=require", "postgres://u:p?q@h/d");
        check(
            "postgres://h:1/d?application_name=a&sslmode=verify-full&sslrootcert=/a%20b",
            "postgres://h:1/d?application_name=a",
        );
        check("postgres://h?sslmode=disable&options=x", "postgres://h?options=x");
    }

    #[test]
    fn the_mode_says_what_is_verified() {
        let check = |query: &str| client(query).unwrap().map(|tls| (tls.check, tls.trust));
        let file = || TrustFiles::File("/ca".into());
        assert_eq!(check(""), None);
        assert_eq!(check("?sslmode=disable"), None);
        assert_eq!(check("?sslmode=require"), Some((ServerCheck::Nothing, TrustFiles::WebRoots)));
        assert_eq!(check("?sslmode=require&sslrootcert=/ca"), Some((ServerCheck::Issuer, file())));
        assert_eq!(
            check("?sslmode=verify-ca&sslrootcert=/ca"),
            Some((ServerCheck::Issuer, file()))
        );
        assert_eq!(
            check("?sslmode=verify-full&sslrootcert=%2Fca"),
            Some((ServerCheck::Full, file()))
        );
        assert_eq!(check("?sslmode=verify-full"), Some((ServerCheck::Full, TrustFiles::WebRoots)));
    }

    #[test]
    fn what_would_protect_less_than_it_seems_is_refused() {
        for (query, reason) in [
            ("?sslmode=prefer", "\"prefer\""),
            ("?sslmode=allow", "\"allow\""),
            ("?sslrootcert=/ca", "verify-full"),
            ("?sslmode=disable&sslrootcert=/ca", "verify-full"),
            ("?sslmode=require&sslcert=/c", "belong together"),
            ("?sslmode=require&sslkey=/k", "belong together"),
        ] {
            let refusal = client(query).unwrap_err();
            assert!(refusal.contains(reason), "{query}: {refusal}");
        }
    }
}

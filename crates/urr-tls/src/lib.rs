//! TLS for everything that URR connects to and listens on: `rustls` with `ring`, certificates and
//! keys in PEM files.
//!
//! A file may be replaced while the program runs: [`server_config`] and [`client_config`] give
//! configurations that read it again, so a certificate is changed without a restart.
//!
//! Deliberately absent: OpenSSL, the certificates of the operating system, and keys with a passphrase.

mod authority;
mod files;
mod reload;
mod verifier;

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, ServerConfig};

pub use self::authority::{CertificateAuthority, IssuedCertificate};
pub use self::files::{IdentityFiles, TlsError, TrustFiles};
use self::reload::{FILE_CHECK_INTERVAL, Reloaded};
use self::verifier::{ReloadedIdentity, ReloadedVerifier};
pub use self::verifier::{ServerCheck, is_certificate_refused};

/// What a client shows of itself and what it demands of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTls {
    pub check: ServerCheck,
    /// Who may have signed the server's certificate.
    pub trust: TrustFiles,
    /// Shown to servers that ask for a certificate.
    pub identity: Option<IdentityFiles>,
}

impl ClientTls {
    /// Verifies issuer and name, and shows no certificate.
    pub fn trusting(trust: TrustFiles) -> ClientTls {
        ClientTls { check: ServerCheck::Full, trust, identity: None }
    }
}

/// The configuration of a client. Replaced files count for the next connection.
pub fn client_config(tls: &ClientTls) -> Result<ClientConfig, TlsError> {
    let verifier = ReloadedVerifier::read(tls.check, &tls.trust)?;
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default versions of TLS")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    Ok(match &tls.identity {
        None => builder.with_no_client_auth(),
        Some(files) => builder.with_client_cert_resolver(Arc::new(identity(files)?)),
    })
}

/// The certificates of a file, as DER, for what is not configured by us. A replaced file is read
/// again.
pub struct CertificateFile(Reloaded<Vec<Vec<u8>>>);

impl CertificateFile {
    pub fn open(path: &Path) -> Result<CertificateFile, TlsError> {
        let file = path.to_owned();
        let read = move || {
            let found = files::certificates(&file)?.into_iter();
            Ok(found.map(|certificate| certificate.to_vec()).collect())
        };
        Reloaded::read(vec![path.to_owned()], FILE_CHECK_INTERVAL, read).map(CertificateFile)
    }

    pub fn current(&self) -> Vec<Vec<u8>> {
        self.0.current().to_vec()
    }
}

/// The configuration of a listener. A replaced certificate counts for the next connection.
pub fn server_config(files: &IdentityFiles) -> Result<ServerConfig, TlsError> {
    Ok(ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default versions of TLS")
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(identity(files)?)))
}

fn identity(files: &IdentityFiles) -> Result<ReloadedIdentity, TlsError> {
    let read = files.clone();
    let paths = vec![files.certificate.clone(), files.key.clone()];
    let reloaded = Reloaded::read(paths, FILE_CHECK_INTERVAL, move || read.read(&provider()))?;
    Ok(ReloadedIdentity(reloaded))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

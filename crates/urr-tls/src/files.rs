//! Certificates and keys in PEM files.

use std::fs;
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

/// A file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", .path.display())]
pub struct TlsError {
    pub path: PathBuf,
    pub reason: String,
}

/// Who may sign the certificates that we accept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TrustFiles {
    /// The authorities that browsers accept, as compiled in.
    #[default]
    WebRoots,
    /// The authorities in this file, and no others.
    File(PathBuf),
}

/// A certificate with the chain to its authority, and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl TrustFiles {
    pub(crate) fn read(&self) -> Result<RootCertStore, TlsError> {
        let path = match self {
            TrustFiles::WebRoots => {
                let roots = webpki_roots::TLS_SERVER_ROOTS.to_vec();
                return Ok(RootCertStore { roots });
            }
            TrustFiles::File(path) => path,
        };
        let mut roots = RootCertStore::empty();
        for certificate in certificates(path)? {
            roots.add(certificate).map_err(|error| unusable(path, error))?;
        }
        Ok(roots)
    }

    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        match self {
            TrustFiles::WebRoots => Vec::new(),
            TrustFiles::File(path) => vec![path.clone()],
        }
    }
}

impl IdentityFiles {
    /// Refuses a key that does not belong to the certificate.
    pub(crate) fn read(&self, provider: &CryptoProvider) -> Result<CertifiedKey, TlsError> {
        let chain = certificates(&self.certificate)?;
        let pem = read(&self.key)?;
        let key = PrivateKeyDer::from_pem_slice(&pem)
            .map_err(|_| unusable(&self.key, "holds no private key without a passphrase"))?;
        CertifiedKey::from_der(chain, key, provider).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                let certificate = self.certificate.display();
                unusable(&self.key, format!("is not the key of {certificate}"))
            }
            error => unusable(&self.key, error),
        })
    }
}

pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let found = found.map_err(|error| unusable(path, format!("is not PEM: {error}")))?;
    if found.is_empty() {
        return Err(unusable(path, "holds no certificate"));
    }
    Ok(found)
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|error| unusable(path, format!("cannot be read: {error}")))
}

fn unusable(path: &Path, reason: impl ToString) -> TlsError {
    TlsError { path: path.to_owned(), reason: reason.to_string() }
}

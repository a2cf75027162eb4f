//! What a client demands of the certificate of a server.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, WebPkiServerVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, DigitallySignedStruct, SignatureScheme};

use crate::reload::{FILE_CHECK_INTERVAL, Reloaded};
use crate::{TlsError, TrustFiles, provider};

/// How much of the server's certificate is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerCheck {
    /// Issuer, time and name.
    Full,
    /// Issuer and time: any server with a certificate of the authority may answer.
    Issuer,
    /// Nothing. Who listens on the way learns nothing; who stands in the way does.
    Nothing,
}

/// Whether an error, or one of its causes, is a refusal of the other side's certificate.
pub fn is_certificate_refused(error: &(dyn Error + 'static)) -> bool {
    if let Some(error) = error.downcast_ref::<rustls::Error>() {
        return matches!(error, rustls::Error::InvalidCertificate(_));
    }
    // An I/O error that holds another one names the cause of that one as its source.
    let held = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    match held {
        Some(held) => is_certificate_refused(held),
        None => error.source().is_some_and(is_certificate_refused),
    }
}

/// A verifier whose authorities are read again when their file changes.
pub(crate) struct ReloadedVerifier {
    check: ServerCheck,
    verifier: Reloaded<WebPkiServerVerifier>,
}

impl ReloadedVerifier {
    pub fn read(check: ServerCheck, trust: &TrustFiles) -> Result<ReloadedVerifier, TlsError> {
        let paths = trust.paths();
        let trust = trust.clone();
        let read = move || {
            let roots = Arc::new(trust.read()?);
            let built = WebPkiServerVerifier::builder_with_provider(roots, provider()).build();
            let verifier = built.expect("a file has at least one authority");
            Ok(Arc::into_inner(verifier).expect("nobody else has it yet"))
        };
        let verifier = Reloaded::read(paths, FILE_CHECK_INTERVAL, read)?;
        Ok(ReloadedVerifier { check, verifier })
    }
}

impl fmt::Debug for ReloadedVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReloadedVerifier").field("check", &self.check).finish_non_exhaustive()
    }
}

impl ServerCertVerifier for ReloadedVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        use CertificateError::{NotValidForName, NotValidForNameContext};
        if self.check == ServerCheck::Nothing {
            return Ok(ServerCertVerified::assertion());
        }
        let verifier = self.verifier.current();
        match verifier.verify_server_cert(certificate, chain, name, ocsp, now) {
            // The name is checked last, so everything else was right.
            Err(rustls::Error::InvalidCertificate(
                NotValidForName | NotValidForNameContext { .. },
            )) if self.check == ServerCheck::Issuer => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.current().verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.current().verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.current().supported_verify_schemes()
    }
}

/// A certificate with its key, read again when the files change.
pub(crate) struct ReloadedIdentity(pub Reloaded<CertifiedKey>);

impl fmt::Debug for ReloadedIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReloadedIdentity").finish_non_exhaustive()
    }
}

impl ResolvesServerCert for ReloadedIdentity {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.current())
    }
}

impl ResolvesClientCert for ReloadedIdentity {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.0.current())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

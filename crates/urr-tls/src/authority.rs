//! A small authority of our own: for one's own machines and for tests, where no other one signs.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;

/// What its certificate and its key cannot be made from is a bug of ours, or of the caller.
type MadeOrInvalid<T> = Result<T, rcgen::Error>;

/// Signs certificates.
pub struct CertificateAuthority {
    issuer: Issuer<'static, KeyPair>,
    certificate_pem: String,
    key_pem: String,
}

/// A certificate with its key, in PEM.
#[derive(Clone)]
pub struct IssuedCertificate {
    pub certificate_pem: String,
    pub key_pem: String,
}

impl CertificateAuthority {
    /// A new authority with a key of its own.
    pub fn create(name: &str) -> MadeOrInvalid<CertificateAuthority> {
        let key = KeyPair::generate()?;
        let params = authority_params(name);
        let certificate_pem = pem("CERTIFICATE", params.self_signed(&key)?.der());
        let key_pem = pem("PRIVATE KEY", &key.serialize_der());
        Ok(CertificateAuthority { issuer: Issuer::new(params, key), certificate_pem, key_pem })
    }

    /// The authority that was made under this name before, to sign more certificates.
    pub fn reopen(
        name: &str,
        certificate_pem: String,
        key_pem: String,
    ) -> MadeOrInvalid<CertificateAuthority> {
        let der = PrivateKeyDer::from_pem_slice(key_pem.as_bytes())
            .map_err(|_| rcgen::Error::CouldNotParseKeyPair)?;
        let issuer = Issuer::new(authority_params(name), KeyPair::try_from(&der)?);
        Ok(CertificateAuthority { issuer, certificate_pem, key_pem })
    }

    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// It signs certificates for any name: keep it apart from the servers.
    pub fn key_pem(&self) -> &str {
        &self.key_pem
    }

    /// A certificate for a server, or a client, of these names and addresses. The first one is its
    /// subject.
    pub fn issue(&self, names: &[&str]) -> MadeOrInvalid<IssuedCertificate> {
        let key = KeyPair::generate()?;
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names.clone())?;
        if let Some(first) = names.first() {
            params.distinguished_name.push(DnType::CommonName, first.as_str());
        }
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(IssuedCertificate {
            certificate_pem: pem("CERTIFICATE", certificate.der()),
            key_pem: pem("PRIVATE KEY", &key.serialize_der()),
        })
    }
}

fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    // It signs certificates of servers and no further authorities.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// Lines of 64 letters, as RFC 7468 has them.
fn pem(label: &str, der: &[u8]) -> String {
    let encoded = BASE64_STANDARD.encode(der);
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in encoded.as_bytes().chunks(64) {
        text.extend(line.iter().map(|letter| char::from(*letter)));
        text.push('\n');
    }
    text + &format!("-----END {label}-----\n")
}

//! What a private server needs to speak TLS.

use std::fs;
use std::path::Path;

use anyhow::Result;

/// The certificate that a server shows, in PEM.
pub struct ServerCertificates<'a> {
    pub certificate: &'a str,
    pub key: &'a str,
    /// Who signed it, and signs the certificates of clients.
    pub authority: &'a str,
    /// Whether clients must have one.
    pub demands_certificates: bool,
}

impl ServerCertificates<'_> {
    /// Writes `server.pem`, `server.key` and `authority.pem` into the server's folder.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        fs::write(folder.join("server.pem"), self.certificate)?;
        super::folder::write_private(&folder.join("server.key"), self.key)?;
        fs::write(folder.join("authority.pem"), self.authority)?;
        Ok(())
    }
}

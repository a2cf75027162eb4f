//! An authority of one's own in a folder, and the certificates that it signs.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use urr_tls::CertificateAuthority;

use crate::data_folder::replace_private;

const AUTHORITY_NAME: &str = "URR authority";

/// Makes `NAME.pem` and `NAME.key` in the folder. Returns their paths.
pub fn issue(
    authority: &CertificateAuthority,
    folder: &Path,
    name: &str,
    hosts: &[&str],
) -> Result<[PathBuf; 2]> {
    let names: Vec<&str> = std::iter::once(name)
        .chain(hosts.iter().copied())
        .chain(["localhost", "127.0.0.1"])
        .collect();
    let issued = authority.issue(&names).context("the certificate")?;
    let [certificate, key] = ["pem", "key"].map(|kind| folder.join(format!("{name}.{kind}")));
    // Running processes read them again. Both are replaced as a whole.
    replace_private(&key, &issued.key_pem)?;
    replace_private(&certificate, &issued.certificate_pem)?;
    Ok([certificate, key])
}

/// The authority of the folder, made now if there is none.
pub fn open_authority(folder: &Path) -> Result<CertificateAuthority> {
    let [certificate, key] = ["authority.pem", "authority.key"].map(|file| folder.join(file));
    if certificate.exists() {
        let read =
            |path: &Path| fs::read_to_string(path).with_context(|| format!("{}", path.display()));
        let opened = CertificateAuthority::reopen(AUTHORITY_NAME, read(&certificate)?, read(&key)?);
        return opened.with_context(|| format!("{} is no key", key.display()));
    }
    let made = CertificateAuthority::create(AUTHORITY_NAME).context("the authority")?;
    replace_private(&key, made.key_pem())?;
    replace_private(&certificate, made.certificate_pem())?;
    Ok(made)
}

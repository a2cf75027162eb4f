//! `urr certificates`: an authority of one's own, and certificates that it signs.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use urr_tls::CertificateAuthority;

use super::print_line;
use crate::data_folder::write_private;

const AUTHORITY_NAME: &str = "URR authority";

#[derive(Debug, clap::Args)]
pub struct CertificatesArgs {
    /// The folder for the files; an authority that is there is used again
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    /// The name of the files, such as auth: auth.pem and auth.key
    name: String,
    /// More names and addresses by which the process is called; localhost and 127.0.0.1 always count
    hosts: Vec<String>,
}

pub fn run(args: &CertificatesArgs) -> Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    ensure!(args.name.chars().all(is_plain), "{:?} cannot be the name of a file", args.name);
    ensure!(args.name != "authority", "this is the name of the authority; choose another one");
    fs::create_dir_all(&args.to).with_context(|| format!("the folder {}", args.to.display()))?;
    let authority = open_authority(&args.to)?;
    let hosts = args.hosts.iter().map(String::as_str);
    let names: Vec<&str> =
        std::iter::once(&*args.name).chain(hosts).chain(["localhost", "127.0.0.1"]).collect();
    let issued = authority.issue(&names).context("the certificate")?;
    let [certificate, key] =
        ["pem", "key"].map(|kind| args.to.join(format!("{}.{kind}", args.name)));
    // Running processes read them again. Both are replaced as a whole.
    replace(&key, &issued.key_pem)?;
    replace(&certificate, &issued.certificate_pem)?;
    print_line(&format!("made {} and {}", certificate.display(), key.display()))?;
    let root = args.to.join("authority.pem");
    print_line(&format!("set internal.tls_root_path of the callers to {}", root.display()))
}

/// The authority of the folder, made now if there is none.
fn open_authority(folder: &Path) -> Result<CertificateAuthority> {
    let [certificate, key] = ["authority.pem", "authority.key"].map(|file| folder.join(file));
    if certificate.exists() {
        let read =
            |path: &Path| fs::read_to_string(path).with_context(|| format!("{}", path.display()));
        let opened = CertificateAuthority::reopen(AUTHORITY_NAME, read(&certificate)?, read(&key)?);
        return opened.with_context(|| format!("{} is no key", key.display()));
    }
    let made = CertificateAuthority::create(AUTHORITY_NAME).context("the authority")?;
    replace(&key, made.key_pem())?;
    replace(&certificate, made.certificate_pem())?;
    Ok(made)
}

fn replace(path: &Path, text: &str) -> Result<()> {
    let new = path.with_extension("new");
    let written = match fs::remove_file(&new) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => write_private(&new, text).and_then(|()| fs::rename(&new, path)),
    };
    written.with_context(|| format!("{}", path.display()))
}

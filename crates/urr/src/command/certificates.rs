//! `urr certificates`: an authority of one's own, and certificates that it signs.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use super::print_line;
use crate::own_authority::{issue, open_authority};

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
    let hosts: Vec<&str> = args.hosts.iter().map(String::as_str).collect();
    let [certificate, key] = issue(&authority, &args.to, &args.name, &hosts)?;
    print_line(&format!("made {} and {}", certificate.display(), key.display()))?;
    let root = args.to.join("authority.pem");
    print_line(&format!("set internal.tls_root_path of the callers to {}", root.display()))
}

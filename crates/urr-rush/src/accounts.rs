//! The file of accounts that a rehearsal uses: one JSON object per line.

use std::fs::{self, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use urr_kernel::Uuid;

/// An account, logged in.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FanAccount {
    pub user_id: Uuid,
    /// The access token.
    pub token: String,
}

/// The first `count` accounts of the file.
pub fn read_accounts(path: &Path, count: usize) -> Result<Vec<FanAccount>> {
    let text = fs::read_to_string(path).with_context(|| {
        format!("{} cannot be read; run `urr rush prepare` first", path.display())
    })?;
    let lines = text.lines().enumerate().take(count);
    let accounts: Vec<FanAccount> = lines
        .map(|(index, line)| {
            serde_json::from_str(line)
                .with_context(|| format!("line {} of {} is no account", index + 1, path.display()))
        })
        .collect::<Result<_>>()?;
    let found = accounts.len();
    ensure!(found == count, "{} has {found} accounts, {count} are needed", path.display());
    Ok(accounts)
}

/// Only the owner can read the file: it holds access tokens.
pub fn write_accounts(path: &Path, accounts: impl Iterator<Item = FanAccount>) -> Result<()> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(path);
    let file = file.with_context(|| format!("{} cannot be written", path.display()))?;
    let mut writer = BufWriter::new(file);
    for account in accounts {
        serde_json::to_writer(&mut writer, &account)?;
        writer.write_all(b"\n")?;
    }
    writer.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(number: u128) -> FanAccount {
        FanAccount { user_id: Uuid::from_u128(number), token: format!("token {number}") }
    }

    #[test]
    fn accounts_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fans.jsonl");
        write_accounts(&path, (1..=3).map(account)).unwrap();
        let read = read_accounts(&path, 2).unwrap();
        assert_eq!(
            read.iter().map(|it| it.token.as_str()).collect::<Vec<_>>(),
            ["token 1", "token 2"]
        );
        let too_few = read_accounts(&path, 4).unwrap_err().to_string();
        assert!(too_few.contains("has 3 accounts, 4 are needed"), "{too_few}");
        fs::write(&path, "not JSON\n").unwrap();
        let broken = read_accounts(&path, 1).unwrap_err().to_string();
        assert!(broken.contains("line 1"), "{broken}");
    }

    #[test]
    fn the_file_with_tokens_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fans.jsonl");
        write_accounts(&path, std::iter::empty()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

//! Copies of a PostgreSQL: a standby that follows it, and a base backup with an archive of its log.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::super::process::{TestServer, poll};
use super::super::{Server, folder, port, program};
use super::{ADMIN, PostgresServer, command_as, hand_over, other_user, recipe};

/// For what a busy machine does in seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a standby calls itself to its primary.
const STANDBY: &str = "standby";

impl PostgresServer {
    /// One of ours with settings of its own, as in `"archive_mode=on"`.
    pub fn start_with(settings: &[&str]) -> Result<PostgresServer> {
        let password = format!("{:016x}", port::random());
        let url = |port| format!("postgres://{ADMIN}:{password}@127.0.0.1:{port}/postgres");
        let recipe = |port| {
            let mut recipe = recipe(folder::create("postgres")?, port, &password, None)?;
            for setting in settings {
                recipe.command.extend(["-c", setting].map(OsString::from));
            }
            Ok(recipe)
        };
        TestServer::start_own(Server::Postgres, recipe, url)
    }

    /// One of ours that copies its log into the folder `archive` beside its data.
    pub fn start_with_archive() -> Result<PostgresServer> {
        let command = "archive_command=mkdir -p ../archive && cp %p ../archive/%f";
        PostgresServer::start_with(&["archive_mode=on", command])
    }

    /// A standby that follows this server.
    pub fn start_standby(&self) -> Result<PostgresServer> {
        let url = format!("{}?application_name={STANDBY}", self.url());
        let recipe = |port| {
            let folder = folder::create("postgres")?;
            if let Some(user) = other_user()? {
                hand_over(folder.path(), user)?;
            }
            copy_data(folder.path(), "data", &url, &["--write-recovery-conf"])?;
            recipe(folder, port, "", None)
        };
        let (login, _) = self.url().rsplit_once(':').context("an address with a port")?;
        TestServer::start_own(Server::Postgres, recipe, |port| format!("{login}:{port}/postgres"))
    }

    /// From now on a commit waits until the standby has it on its disk.
    pub fn wait_for_standby(&self) -> Result<()> {
        self.ask(&format!("alter system set synchronous_standby_names = '{STANDBY}'"))?;
        self.ask("select pg_reload_conf()")?;
        self.await_answer("select count(*) from pg_stat_replication where sync_state = 'sync'", "1")
    }

    /// A standby hears no more of what its primary commits.
    pub fn stop_following(&self) -> Result<()> {
        self.ask("alter system set primary_conninfo = ''")?;
        self.ask("select pg_reload_conf()")?;
        self.await_answer("select count(*) from pg_stat_wal_receiver", "0")
    }

    /// Makes a standby a primary.
    pub fn promote(&self) -> Result<()> {
        let promoted = self.ask("select pg_promote()")?;
        ensure!(promoted == "t", "the standby was not promoted: {promoted}");
        Ok(())
    }

    /// Copies its data, while it works, into the folder `base` beside them.
    pub fn back_up(&mut self) -> Result<()> {
        let folder = self.folder()?;
        copy_data(&folder, "base", self.url(), &[])
    }

    /// Names this moment, and waits until the archive has it.
    pub fn name_moment(&self, name: &str) -> Result<()> {
        self.ask(&format!("select pg_create_restore_point('{name}')"))?;
        let file = self.ask("select pg_walfile_name(pg_switch_wal())")?;
        let is_archived = format!("select last_archived_wal >= '{file}' from pg_stat_archiver");
        self.await_answer(&is_archived, "t")
    }

    /// Loses the data of a server that does not run, and starts it with those of a moment: from the
    /// base backup and the archive.
    pub fn recover_to(&mut self, moment: &str) -> Result<()> {
        let folder = self.folder()?;
        let (data, user) = (folder.join("data"), other_user()?);
        fs::remove_dir_all(&data)?;
        let mut copy = command_as(user, Path::new("cp"))?;
        program::run(copy.args(["--archive", "base", "data"]).current_dir(&folder))?;
        let mut settings = File::options().append(true).open(data.join("postgresql.auto.conf"))?;
        writeln!(settings, "restore_command = 'cp ../archive/%f %p'")?;
        writeln!(settings, "recovery_target_name = '{moment}'")?;
        writeln!(settings, "recovery_target_action = 'promote'")?;
        fs::write(data.join("recovery.signal"), "")?;
        if let Some(user) = user {
            hand_over(&folder, user)?;
        }
        self.start_again()?;
        self.await_answer("select pg_is_in_recovery()", "f")
    }

    fn await_answer(&self, question: &str, answer: &str) -> Result<()> {
        poll(PATIENCE, || Ok((self.ask(question)? == answer).then_some(())))?
            .with_context(|| format!("{question} was never {answer}"))
    }
}

/// A base backup of a running server.
fn copy_data(folder: &Path, name: &str, url: &str, more: &[&str]) -> Result<()> {
    let mut copy = command_as(other_user()?, &program::find_postgres("pg_basebackup")?)?;
    copy.current_dir(folder)
        .args(["--pgdata", name, "--checkpoint=fast", "--no-sync", "--dbname", url])
        .args(more);
    program::run(&mut copy).context("copying PostgreSQL's data")?;
    Ok(())
}

//! `urr migrate`: tables, and on PostgreSQL schemas, roles and grants.

use anyhow::Result;
use urr_kernel::Clock;

use super::print_line;
use crate::config::Config;
use crate::data_folder::DataFolder;
use crate::engines;
use crate::role::ProcessRole;

pub fn migrate(config: &Config) -> Result<()> {
    let needs_folder = ProcessRole::ALL.into_iter().any(|role| engines::is_on_sqlite(config, role));
    let _folder = match needs_folder {
        true => Some(DataFolder::lock(&config.data.dir)?),
        false => None,
    };
    ProcessRole::ALL.into_iter().try_for_each(|role| migrate_role(config, role))
}

fn migrate_role(config: &Config, role: ProcessRole) -> Result<()> {
    let Some(schema) = role.schema() else {
        return Ok(());
    };
    let applied = engines::migrate_storage(config, role, Clock::System.now())?;
    match applied.as_slice() {
        [] => print_line(&format!("{}: up to date", schema.name)),
        applied => print_line(&format!("{}: applied {}", schema.name, applied.join(", "))),
    }
}

//! Schemas, roles, grants and tables on PostgreSQL: what `urr migrate` does there.
//!
//! Each service has a schema and a role of its own. The role may read and change the rows of its
//! schema and nothing else; the tables belong to whoever runs the migrations.

use postgres::{Client, NoTls};
use urr_kernel::{Secret, Timestamp};

use super::connection::{explain, explain_connect, parse_url, require_safe_settings};
use crate::dialect::Engine;
use crate::migrate::{Applied, Schema, plan};
use crate::{StorageError, migrate};

/// Two programs that migrate at once take turns by this lock of the database.
const MIGRATION_LOCK: i64 = 0x0075_7272_6d69_6772;

/// The login of one service.
#[derive(Clone, Debug)]
pub struct ServiceRole {
    pub name: String,
    pub password: Secret,
}

/// Creates what is missing for one service: role, schema, grants, tables. Running it again changes
/// nothing. Returns the migrations that were applied now.
pub fn provision(
    admin_url: &str,
    schema: &Schema,
    role: &ServiceRole,
    now: Timestamp,
) -> Result<Vec<String>, StorageError> {
    super::on_own_thread(|| provision_here(admin_url, schema, role, now))
}

fn provision_here(
    admin_url: &str,
    schema: &Schema,
    role: &ServiceRole,
    now: Timestamp,
) -> Result<Vec<String>, StorageError> {
    let config = parse_url(admin_url)?;
    let mut client = config.connect(NoTls).map_err(|error| explain_connect(&config, &error))?;
    require_safe_settings(&mut client)?;
    require_plain_name(schema.name)?;
    require_plain_name(&role.name)?;
    run(&mut client, &format!("select pg_advisory_lock({MIGRATION_LOCK})"))?;
    create_role_and_schema(&mut client, schema.name, role)?;
    let applied = migrate_schema(&mut client, schema, now)?;
    grant_rows(&mut client, schema.name, &role.name)?;
    Ok(applied)
}

/// Names go into statements as they are, so they are held to letters that need no quotes.
fn require_plain_name(name: &str) -> Result<(), StorageError> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if name.is_empty() || name.len() > 63 || !name.chars().all(plain) {
        return Err(StorageError::Unsafe(format!(
            "{name:?} cannot be the name of a schema or role: use a-z, 0-9 and _"
        )));
    }
    Ok(())
}

fn create_role_and_schema(
    client: &mut Client,
    schema: &str,
    role: &ServiceRole,
) -> Result<(), StorageError> {
    let name = &role.name;
    let known = client
        .query_opt("select 1 from pg_roles where rolname = $1", &[name])
        .map_err(|error| explain(&error, "select from pg_roles"))?;
    let verb = if known.is_some() { "alter" } else { "create" };
    let password = role.password.expose().replace('\'', "''");
    client
        .batch_execute(&format!(
            "{verb} role {name} with login nosuperuser nocreatedb nocreaterole noinherit \
             password '{password}'"
        ))
        .map_err(|error| explain(&error, &format!("{verb} role {name} (password hidden)")))?;
    run(client, &format!("create schema if not exists {schema}"))?;
    run(client, &format!("revoke all on schema {schema} from public"))?;
    run(client, &format!("grant usage on schema {schema} to {name}"))
}

/// Rows only: the role can neither change a table's definition nor empty it unseen.
fn grant_rows(client: &mut Client, schema: &str, role: &str) -> Result<(), StorageError> {
    let rows = "select, insert, update, delete";
    run(client, &format!("grant {rows} on all tables in schema {schema} to {role}"))?;
    run(client, &format!("grant usage, select on all sequences in schema {schema} to {role}"))?;
    let future = format!("alter default privileges in schema {schema}");
    run(client, &format!("{future} grant {rows} on tables to {role}"))?;
    run(client, &format!("{future} grant usage, select on sequences to {role}"))
}

fn migrate_schema(
    client: &mut Client,
    schema: &Schema,
    now: Timestamp,
) -> Result<Vec<String>, StorageError> {
    run(client, &format!("set search_path to {}", schema.name))?;
    run(client, migrate::JOURNAL_POSTGRES)?;
    let journal = migrate::JOURNAL_SELECT;
    let rows = client.query(journal, &[]).map_err(|error| explain(&error, journal))?;
    let applied = rows
        .iter()
        .map(|row| Applied { series: row.get(0), version: row.get(1), checksum: row.get(2) })
        .collect::<Vec<_>>();
    let mut names = Vec::new();
    for migration in plan(schema, &applied)? {
        let mut transaction = client.transaction().map_err(|error| explain(&error, "begin"))?;
        for statement in migration.statements()? {
            if statement.only == Some(Engine::Sqlite) {
                continue;
            }
            transaction
                .batch_execute(&statement.sql)
                .map_err(|error| explain(&error, &statement.sql))?;
        }
        let insert = migrate::JOURNAL_INSERT;
        transaction
            .execute(
                insert,
                &[
                    &migration.series,
                    &migration.version,
                    &migration.name,
                    &migration.checksum(),
                    &now.as_microsecond(),
                ],
            )
            .map_err(|error| explain(&error, insert))?;
        transaction.commit().map_err(|error| explain(&error, "commit"))?;
        names.push(migration.to_string());
    }
    Ok(names)
}

fn run(client: &mut Client, sql: &str) -> Result<(), StorageError> {
    client.batch_execute(sql).map_err(|error| explain(&error, sql))
}

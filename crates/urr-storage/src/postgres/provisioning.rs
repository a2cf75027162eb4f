//! Schemas, roles, grants and tables on PostgreSQL: what `urr migrate` does there.
//!
//! Each service has a schema and a role of its own. The role may read and change the rows of its
//! schema and nothing else; the tables belong to whoever runs the migrations.

use std::time::Duration;

use postgres_protocol::password::scram_sha_256;
use urr_kernel::{Secret, Timestamp};

use super::connection::{PostgresConnection, parse_url};
use crate::dialect::SqlEngine;
use crate::migrate::{self, Migration, Schema};
use crate::tx::TxConnection;
use crate::{DbResult, StorageError, Tx, params};

/// Two programs that migrate at once take turns by this lock of the database.
pub(crate) const MIGRATION_LOCK: i64 = 0x0075_7272_6d69_6772;

/// A migration may rewrite a large table.
const LOGIN_ATTEMPTS_MAX: u32 = 5;
const MIGRATION_TIMEOUT: Duration = Duration::from_hours(6);

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
) -> DbResult<Vec<String>> {
    super::on_own_thread(|| provision_here(admin_url, schema, role, now))
}

fn provision_here(
    admin_url: &str,
    schema: &Schema,
    role: &ServiceRole,
    now: Timestamp,
) -> DbResult<Vec<String>> {
    let mut client = PostgresConnection::connect(&parse_url(admin_url)?, MIGRATION_TIMEOUT)?;
    require_plain_name(schema.name)?;
    require_plain_name(&role.name)?;
    client.run_plain(&format!("select pg_advisory_lock({MIGRATION_LOCK})"))?;
    create_role_and_schema(&mut client, schema.name, role)?;
    let applied = migrate_schema(&mut client, schema, now)?;
    grant_rows(&mut client, schema.name, &role.name)?;
    Ok(applied)
}

/// Names go into statements as they are, so they are held to letters that need no quotes.
fn require_plain_name(name: &str) -> DbResult<()> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if name.is_empty() || name.len() > 63 || !name.chars().all(plain) {
        return Err(StorageError::Unsafe(format!(
            "{name:?} cannot be the name of a schema or role: use a-z, 0-9 and _"
        )));
    }
    Ok(())
}

/// Roles belong to the whole server, while our lock is the database's: programs that migrate other
/// databases of the server may change the same role at this moment. The last one counts.
fn set_login(client: &mut PostgresConnection, role: &ServiceRole) -> DbResult<()> {
    let mut attempts = 1..=LOGIN_ATTEMPTS_MAX;
    loop {
        let is_last = attempts.next() == Some(LOGIN_ATTEMPTS_MAX);
        match try_set_login(client, role) {
            Err(StorageError::Constraint { .. } | StorageError::Statement { .. }) if !is_last => {}
            // The statement holds what the password can be checked with: it goes into no log.
            Err(StorageError::Statement { message, .. }) => {
                let sql = format!("the login of {}", role.name);
                return Err(StorageError::Statement { message, sql });
            }
            outcome => return outcome,
        }
    }
}

fn try_set_login(client: &mut PostgresConnection, role: &ServiceRole) -> DbResult<()> {
    let name = &role.name;
    let look = "select rolsuper or rolname = current_user as is_ours from pg_roles \
                where rolname = $1::text";
    let mut tx = Tx::new(TxConnection::Postgres(client));
    let known: Option<bool> = tx.query_opt(look, params![name], |row| row.get("is_ours"))?;
    if known == Some(true) {
        return Err(StorageError::Unsafe(format!(
            "{name} is an administrator of this database and cannot be the login of a service; \
             choose another name"
        )));
    }
    let verb = if known.is_some() { "alter" } else { "create" };
    // A verifier instead of the password: the server may write statements into its log.
    let password = scram_sha_256(role.password.expose().as_bytes());
    // A new role has no special rights. Saying so again would need a superuser.
    client.run_plain(&format!("{verb} role {name} with login password '{password}'"))
}

fn create_role_and_schema(
    client: &mut PostgresConnection,
    schema: &str,
    role: &ServiceRole,
) -> DbResult<()> {
    set_login(client, role)?;
    let name = &role.name;
    client.run_plain(&format!("create schema if not exists {schema}"))?;
    client.run_plain(&format!("revoke all on schema {schema} from public"))?;
    client.run_plain(&format!("grant usage on schema {schema} to {name}"))
}

/// Rows only: the role can neither change a table's definition nor empty it unseen.
fn grant_rows(client: &mut PostgresConnection, schema: &str, role: &str) -> DbResult<()> {
    let rows = "select, insert, update, delete";
    client.run_plain(&format!("grant {rows} on all tables in schema {schema} to {role}"))?;
    // Only who migrates writes down what was migrated.
    client.run_plain(&format!("revoke all on {schema}.schema_migrations from {role}"))?;
    client.run_plain(&format!("grant select on {schema}.schema_migrations to {role}"))?;
    client
        .run_plain(&format!("grant usage, select on all sequences in schema {schema} to {role}"))?;
    let future = format!("alter default privileges in schema {schema}");
    client.run_plain(&format!("{future} grant {rows} on tables to {role}"))?;
    client.run_plain(&format!("{future} grant usage, select on sequences to {role}"))
}

fn migrate_schema(
    client: &mut PostgresConnection,
    schema: &Schema,
    now: Timestamp,
) -> DbResult<Vec<String>> {
    client.run_plain(&format!("set search_path to {}", schema.name))?;
    client.run_plain(migrate::JOURNAL_POSTGRES)?;
    let mut names = Vec::new();
    for migration in migrate::pending(&mut Tx::new(TxConnection::Postgres(client)), schema)? {
        client.begin(false);
        apply(client, &migration, now)?;
        client.commit()?;
        names.push(migration.to_string());
    }
    Ok(names)
}

/// After an error the connection is given up, and with it the transaction.
fn apply(client: &mut PostgresConnection, migration: &Migration, now: Timestamp) -> DbResult<()> {
    client.execute(migrate::JOURNAL_INSERT, &migration.journal_row(&migration.checksum(), now))?;
    for statement in migration.statements()? {
        if statement.only != Some(SqlEngine::Sqlite) {
            client.run_plain(&statement.sql)?;
        }
    }
    Ok(())
}

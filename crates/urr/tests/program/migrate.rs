//! `urr migrate` and `urr doctor` on PostgreSQL.

use anyhow::Result;
use postgres::{Client, NoTls};
use urr_test::servers::{self, PostgresServer, Server};

use crate::process::Installation;

/// Role, schema, name of the first migration and a table of it, for each service.
const SERVICES: [(&str, &str, &str, &str); 8] = [
    ("user_svc_user", "user_service", "accounts", "users"),
    ("event_svc_user", "event_service", "artists", "artists"),
    ("queue_svc_user", "queue_service", "rooms", "rooms"),
    ("reservation_svc_user", "reservation_service", "sales", "sales"),
    ("payment_svc_user", "payment_service", "payments", "payments"),
    ("stats_svc_user", "stats_service", "activity", "activity"),
    ("mail_svc_user", "mail_service", "mails", "mails"),
    ("community_svc_user", "community_service", "posts", "posts"),
];

#[test]
fn each_service_gets_a_schema_that_no_other_can_read() -> Result<()> {
    if !servers::available(Server::Postgres)? {
        return Ok(());
    }
    // Roles belong to the whole server, so it must be our own.
    let server = PostgresServer::start()?;
    let url = server.create_database("program")?;
    let mut installation = Installation::new()?;
    installation.share_secrets();
    installation.set("URR_DATABASE_URL", &url);

    let doctor = installation.run(&["doctor"])?;
    assert_eq!(doctor.status.code(), Some(1), "{doctor:?}");
    assert_eq!(doctor.stdout.matches("PROBLEM").count(), SERVICES.len(), "{doctor:?}");
    assert!(doctor.stdout.contains("urr migrate"), "{doctor:?}");
    assert_eq!(doctor.stderr, "urr: 8 problems were found\n");

    let first = installation.run(&["migrate"])?.succeeded()?.stdout;
    let again = installation.run(&["migrate"])?.succeeded()?.stdout;
    assert_eq!(first.lines().count(), SERVICES.len(), "{first}");
    for (_, schema, name, _) in SERVICES {
        let applied = format!(
            "{schema}: applied kit 1 (outbox and inbox), kit 2 (admin log), \
             kit 3 (idempotency keys), kit 4 (whole audits), service 1 ({name})"
        );
        assert!(first.contains(&applied), "{first}");
        assert!(again.contains(&format!("{schema}: up to date\n")), "{again}");
    }

    let doctor = installation.run(&["doctor"])?.succeeded()?.stdout;
    assert!(!doctor.contains("PROBLEM"), "{doctor}");
    assert!(doctor.contains("PostgreSQL: the tables of stats are up to date"), "{doctor}");
    check_rights(&url)
}

/// A role reads and writes the rows of its own tables, and nothing else.
fn check_rights(url: &str) -> Result<()> {
    let mut admin = Client::connect(url, NoTls)?;
    let mut may = |sql: &str, role: &str, thing: &str, right: &str| -> Result<bool> {
        Ok(admin.query_one(sql, &[&role, &thing, &right])?.get(0))
    };
    for (role, own, ..) in SERVICES {
        for (_, schema, _, table) in SERVICES {
            let is_own = schema == own;
            let sql = "select has_schema_privilege($1::text, $2::text, $3::text)";
            assert_eq!(may(sql, role, schema, "usage")?, is_own, "{role} in {schema}");
            assert!(!may(sql, role, schema, "create")?, "{role} in {schema}");
            let sql = "select has_table_privilege($1::text, $2::text, $3::text)";
            for table in [format!("{schema}.{table}"), format!("{schema}.outbox")] {
                for right in ["select", "insert", "update", "delete"] {
                    assert_eq!(may(sql, role, &table, right)?, is_own, "{role} {right} {table}");
                }
                assert!(!may(sql, role, &table, "truncate")?, "{role} in {table}");
            }
        }
    }
    Ok(())
}

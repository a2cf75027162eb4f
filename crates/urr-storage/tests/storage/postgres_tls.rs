//! TLS to a real PostgreSQL that lets nobody in without it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use urr_kernel::{Secret, Timestamp};
use urr_storage::{Db, PostgresOptions, ServiceRole, StorageError, provision, reach_postgres};
use urr_test::servers::{self, PostgresServer, Server, ServerCertificates};
use urr_tls::{CertificateAuthority, IssuedCertificate};

use crate::fixture::{SCHEMA, insert_number, numbers, url_as};

struct TlsServer {
    server: PostgresServer,
    authority: CertificateAuthority,
    folder: TempDir,
}

impl TlsServer {
    /// With a certificate for `localhost`, and not for the address.
    fn start(demands_certificates: bool) -> Option<TlsServer> {
        if !servers::available(Server::Postgres).unwrap() {
            return None;
        }
        let authority = CertificateAuthority::create("authority of this test").unwrap();
        let IssuedCertificate { certificate_pem, key_pem } =
            authority.issue(&["localhost"]).unwrap();
        let server = PostgresServer::start_with_tls(&ServerCertificates {
            certificate: &certificate_pem,
            key: &key_pem,
            authority: authority.certificate_pem(),
            demands_certificates,
        });
        let folder = tempfile::tempdir().unwrap();
        let tls = TlsServer { server: server.unwrap(), authority, folder };
        tls.write("ca.pem", tls.authority.certificate_pem());
        let other = CertificateAuthority::create("another authority").unwrap();
        tls.write("other.pem", other.certificate_pem());
        Some(tls)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// The administrator's URL by this host, with these parameters.
    fn url(&self, host: &str, parameters: &str) -> String {
        format!("{}?{parameters}", self.server.url().replace("@127.0.0.1:", &format!("@{host}:")))
    }

    fn verify_full(&self, host: &str, authority: &str) -> String {
        self.url(host, &format!("sslmode=verify-full&sslrootcert={}", self.path(authority)))
    }
}

impl TlsServer {
    /// Why the next connection is refused, if it is.
    fn refusal_after_restart(&mut self, db: &Db) -> Option<String> {
        self.server.restart().unwrap();
        let mut refusal = None;
        urr_test::engines::block_on(async {
            // The first finds that the connection is gone.
            for _ in 0..2 {
                let one = db.read(|tx| tx.query_one("select 1 as one", &[], |row| row.get("one")));
                refusal = one.await.map(|_: i32| ()).err().map(|e: StorageError| e.to_string());
            }
        });
        refusal
    }
}

fn refused_with(url: &str, reason: &str) {
    let refusal = reach_postgres(url).unwrap_err().to_string();
    assert!(refusal.contains(reason), "{refusal}");
}

#[test]
fn a_verified_server_is_written_to_and_read_from() {
    let Some(tls) = TlsServer::start(false) else { return };
    let url = tls.verify_full("localhost", "ca.pem");
    let role = ServiceRole { name: "encrypted".to_owned(), password: Secret::generate() };
    provision(&url, &SCHEMA, &role, Timestamp::UNIX_EPOCH).unwrap();
    let db = Db::open_postgres(&PostgresOptions::new(url_as(&url, &role), SCHEMA.name)).unwrap();
    urr_test::engines::block_on(async {
        for n in 0..20 {
            insert_number(&db, n).await.unwrap();
        }
        assert_eq!(numbers(&db).await, (0..20).collect::<Vec<i64>>());
        let sql = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";
        let is_encrypted = db.read(move |tx| tx.query_one(sql, &[], |row| row.get::<bool>("ssl")));
        assert_eq!(is_encrypted.await, Ok::<_, urr_storage::StorageError>(true));
    });
}

#[test]
fn each_mode_verifies_what_it_says_and_no_more() {
    let Some(tls) = TlsServer::start(false) else { return };
    let ca = |mode: &str, file: &str| format!("sslmode={mode}&sslrootcert={}", tls.path(file));
    // Only the name is wrong: the certificate is not for the address.
    refused_with(&tls.url("127.0.0.1", &ca("verify-full", "ca.pem")), "not valid for name");
    reach_postgres(&tls.url("127.0.0.1", &ca("verify-ca", "ca.pem"))).unwrap();
    reach_postgres(&tls.url("127.0.0.1", &ca("require", "ca.pem"))).unwrap();
    reach_postgres(&tls.url("localhost", &ca("verify-full", "ca.pem"))).unwrap();
    // Only the authority is wrong.
    for mode in ["verify-full", "verify-ca", "require"] {
        refused_with(&tls.url("localhost", &ca(mode, "other.pem")), "UnknownIssuer");
    }
    refused_with(&tls.url("localhost", "sslmode=verify-full"), "UnknownIssuer");
    // Control: who verifies nothing gets in.
    reach_postgres(&tls.url("localhost", "sslmode=require")).unwrap();
}

#[test]
fn a_server_without_tls_is_not_given_the_password() {
    if !servers::available(Server::Postgres).unwrap() {
        return;
    }
    let url = servers::shared_postgres().unwrap().url();
    refused_with(&format!("{url}?sslmode=require"), "server does not support TLS");
    reach_postgres(&format!("{url}?sslmode=disable")).unwrap();
}

#[test]
fn a_server_that_wants_certificates_gets_ours() {
    let Some(tls) = TlsServer::start(true) else { return };
    let own = tls.authority.issue(&["client"]).unwrap();
    let (certificate, key) =
        (tls.write("own.pem", &own.certificate_pem), tls.write("own.key", &own.key_pem));
    let with = |certificate: &Path, key: &Path| {
        let files = format!("&sslcert={}&sslkey={}", certificate.display(), key.display());
        tls.verify_full("localhost", "ca.pem") + &files
    };
    let open = |url: String| {
        let mut options = PostgresOptions::new(url, "public");
        options.connections = 1;
        Db::open_postgres(&options).map(drop).map_err(|error| error.to_string())
    };
    open(with(&certificate, &key)).unwrap();
    // Control: without one the server refuses us.
    let refusal = open(tls.verify_full("localhost", "ca.pem")).unwrap_err();
    assert!(refusal.contains("certificate"), "{refusal}");
    let stranger = CertificateAuthority::create("another authority").unwrap();
    let stranger = stranger.issue(&["client"]).unwrap();
    let (other, other_key) =
        (tls.write("s.pem", &stranger.certificate_pem), tls.write("s.key", &stranger.key_pem));
    open(with(&other, &other_key)).unwrap_err();
    let refusal = open(with(&certificate, &other_key)).unwrap_err();
    assert!(refusal.contains("is not the key of"), "{refusal}");
    let refusal = open(with(&tls.folder.path().join("none.pem"), &key)).unwrap_err();
    assert!(refusal.contains("none.pem: cannot be read"), "{refusal}");
}

/// A lost connection is made again with the files as they are then: the authority, and our own
/// certificate.
#[test]
fn replaced_certificates_count_from_the_next_connection_on() {
    let Some(mut tls) = TlsServer::start(true) else { return };
    let own = tls.authority.issue(&["client"]).unwrap();
    let stranger = CertificateAuthority::create("another authority").unwrap();
    let other = stranger.issue(&["client"]).unwrap();
    tls.write("own.pem", &own.certificate_pem);
    tls.write("own.key", &own.key_pem);
    let own_files = format!("&sslcert={}&sslkey={}", tls.path("own.pem"), tls.path("own.key"));
    let url = tls.verify_full("localhost", "ca.pem") + &own_files;
    let mut options = PostgresOptions::new(url, "public");
    options.connections = 1;
    let db = Db::open_postgres(&options).unwrap();
    let authority = tls.authority.certificate_pem().to_owned();
    let right = (&own, &*authority);
    for (files, reason) in [
        ((&own, stranger.certificate_pem()), Some("UnknownIssuer")),
        (right, None),
        ((&other, &*authority), Some("alert")),
        (right, None),
    ] {
        let (identity, authority) = files;
        tls.write("ca.pem", authority);
        tls.write("own.pem", &identity.certificate_pem);
        tls.write("own.key", &identity.key_pem);
        // Files are looked at once a second at most.
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let refusal = tls.refusal_after_restart(&db);
            match (&refusal, reason) {
                (None, None) => break,
                (Some(refusal), Some(reason)) if refusal.contains(reason) => break,
                _ => assert!(Instant::now() < deadline, "{refusal:?} instead of {reason:?}"),
            }
        }
    }
}

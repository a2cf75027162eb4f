//! TLS and users, on one server and on a Cluster.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;
use urr_kernel::Secret;
use urr_redis::{Redis, RedisError, RedisOptions, RedisTopology};
use urr_test::servers::{self, RedisCluster, RedisServer, Server, ServerCertificates};
use urr_tls::{CertificateAuthority, IdentityFiles, IssuedCertificate, TrustFiles};

use crate::fixture::ADD;

/// An authority, what it signed for the server, and a folder for files of clients.
struct Certificates {
    authority: CertificateAuthority,
    server: IssuedCertificate,
    folder: TempDir,
}

impl Certificates {
    fn make() -> Option<Certificates> {
        if !servers::available(Server::RedisCluster).unwrap() {
            return None;
        }
        let authority = CertificateAuthority::create("authority of this test").unwrap();
        // The nodes of a Cluster tell their addresses.
        let server = authority.issue(&["localhost", "127.0.0.1"]).unwrap();
        Some(Certificates { authority, server, folder: tempfile::tempdir().unwrap() })
    }

    fn of_server(&self, demands_certificates: bool) -> ServerCertificates<'_> {
        ServerCertificates {
            certificate: &self.server.certificate_pem,
            key: &self.server.key_pem,
            authority: self.authority.certificate_pem(),
            demands_certificates,
        }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn trusting(&self) -> RedisOptions {
        trusting(self.write("ca.pem", self.authority.certificate_pem()))
    }

    fn identity(&self, authority: &CertificateAuthority) -> IdentityFiles {
        let own = authority.issue(&["client"]).unwrap();
        IdentityFiles {
            certificate: self.write("own.pem", &own.certificate_pem),
            key: self.write("own.key", &own.key_pem),
        }
    }
}

fn trusting(path: PathBuf) -> RedisOptions {
    RedisOptions { trust: TrustFiles::File(path), ..RedisOptions::default() }
}

fn single(url: &str) -> RedisTopology {
    RedisTopology::Single(Secret::new(url))
}

/// Runs a script; the error says why there is no connection.
async fn add(topology: &RedisTopology, options: RedisOptions) -> Result<i64, String> {
    let redis = Redis::connect_with(topology, options).await.map_err(|error| error.to_string())?;
    redis.reach().await?;
    let added: Result<i64, RedisError> = redis.run(&ADD, &["{tls}:number"], 1).await;
    added.map_err(|error| error.to_string())
}

async fn refused_with(topology: &RedisTopology, options: RedisOptions, reason: &str) {
    let refusal = add(topology, options).await.unwrap_err();
    assert!(refusal.contains(reason), "{refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_reached_by_its_name_authority_and_user_only() {
    let Some(certificates) = Certificates::make() else { return };
    let server = RedisServer::start_with_tls(&certificates.of_server(false)).unwrap();
    let right = single(server.url());
    assert_eq!(add(&right, certificates.trusting()).await, Ok(1));
    let other = CertificateAuthority::create("another authority").unwrap();
    let other = trusting(certificates.write("other.pem", other.certificate_pem()));
    refused_with(&right, other, "UnknownIssuer").await;
    refused_with(&right, RedisOptions::default(), "UnknownIssuer").await;
    let [user, password] = RedisServer::USER;
    for login in [format!("{user}:wrong"), format!("nobody:{password}"), format!(":{password}")] {
        let url = server.url().replace(&format!("{user}:{password}"), &login);
        refused_with(&single(&url), certificates.trusting(), "uthentication").await;
    }
    let missing = trusting(certificates.folder.path().join("none.pem"));
    refused_with(&right, missing, "none.pem cannot be read").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_for_another_name_is_refused() {
    let Some(mut certificates) = Certificates::make() else { return };
    certificates.server = certificates.authority.issue(&["redis.example"]).unwrap();
    let server = RedisServer::start_with_tls(&certificates.of_server(false)).unwrap();
    refused_with(&single(server.url()), certificates.trusting(), "not valid for name").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_tls_is_not_talked_to() {
    let Some(certificates) = Certificates::make() else { return };
    let plain = servers::shared_redis().unwrap().url().replace("redis://", "rediss://");
    assert!(add(&single(&plain), certificates.trusting()).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_wants_certificates_gets_ours() {
    let Some(certificates) = Certificates::make() else { return };
    let server = RedisServer::start_with_tls(&certificates.of_server(true)).unwrap();
    let address = single(server.url());
    // Control: without one the server refuses us.
    assert!(add(&address, certificates.trusting()).await.is_err());
    let stranger = CertificateAuthority::create("another authority").unwrap();
    let identity = Some(certificates.identity(&stranger));
    let options = RedisOptions { identity, ..certificates.trusting() };
    assert!(add(&address, options).await.is_err());
    let identity = Some(certificates.identity(&certificates.authority));
    let options = RedisOptions { identity, ..certificates.trusting() };
    assert_eq!(add(&address, options).await, Ok(1));
}

/// A lost connection is made again with the files as they are then.
#[tokio::test(flavor = "multi_thread")]
async fn replaced_authorities_count_from_the_next_connection_on() {
    let Some(certificates) = Certificates::make() else { return };
    let mut server = RedisServer::start_with_tls(&certificates.of_server(false)).unwrap();
    let options = certificates.trusting();
    let redis = Redis::connect_with(&single(server.url()), options).await.unwrap();
    redis.reach().await.unwrap();
    let other = CertificateAuthority::create("another authority").unwrap();
    certificates.write("ca.pem", other.certificate_pem());
    redis.reach().await.expect("the connection lasts");
    server.restart().unwrap();
    // The first call finds that the connection is gone.
    drop(redis.reach().await);
    let refusal = redis.reach().await.unwrap_err();
    assert!(refusal.contains("UnknownIssuer"), "{refusal}");
    certificates.trusting();
    redis.reach().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_node_of_a_cluster_is_verified() {
    let Some(certificates) = Certificates::make() else { return };
    let cluster = RedisCluster::start_with_tls(&certificates.of_server(false)).unwrap();
    let nodes = RedisTopology::Cluster(cluster.urls().iter().map(Secret::new).collect());
    let redis = Redis::connect_with(&nodes, certificates.trusting()).await.unwrap();
    redis.reach().await.unwrap();
    for key in 0..20 {
        let key = format!("{{{key}}}:number");
        assert_eq!(redis.run(&ADD, &[&key], 1).await, Ok(1));
    }
    let other = CertificateAuthority::create("another authority").unwrap();
    let other = trusting(certificates.write("other.pem", other.certificate_pem()));
    assert!(add(&nodes, other).await.is_err());
}

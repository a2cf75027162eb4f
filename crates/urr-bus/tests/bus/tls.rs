//! TLS and logins to Kafka.

use std::fs;
use std::path::PathBuf;

use futures_util::future::join_all;
use tempfile::TempDir;
use urr_bus::{Bus, BusError, KafkaEncryption, KafkaLogin, KafkaOptions, SaslMechanism};
use urr_kernel::Secret;
use urr_test::servers::{self, KafkaServer, Server, ServerCertificates};
use urr_tls::{CertificateAuthority, IdentityFiles};

use crate::fixture::{Fixture, paint, steps};

struct Certificates {
    authority: CertificateAuthority,
    folder: TempDir,
}

impl Certificates {
    fn make() -> Option<Certificates> {
        if !servers::available(Server::Kafka).unwrap() {
            return None;
        }
        let authority = CertificateAuthority::create("authority of this test").unwrap();
        Some(Certificates { authority, folder: tempfile::tempdir().unwrap() })
    }

    async fn server(&self, name: &str, demands_certificates: bool) -> KafkaServer {
        let server = self.authority.issue(&[name]).unwrap();
        let authority = self.authority.certificate_pem().to_owned();
        let start = move || {
            KafkaServer::start_with_tls(&ServerCertificates {
                certificate: &server.certificate_pem,
                key: &server.key_pem,
                authority: &authority,
                demands_certificates,
            })
        };
        tokio::task::spawn_blocking(start).await.unwrap().unwrap()
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn encryption(&self, authority: &CertificateAuthority) -> KafkaEncryption {
        let root_path = Some(self.write("ca.pem", authority.certificate_pem()));
        KafkaEncryption { root_path, identity: None }
    }

    fn options(&self, server: &KafkaServer) -> KafkaOptions {
        KafkaOptions {
            encryption: Some(self.encryption(&self.authority)),
            login: Some(login(SaslMechanism::ScramSha512)),
            ..KafkaOptions::new(server.bootstrap())
        }
    }
}

fn login(mechanism: SaslMechanism) -> KafkaLogin {
    let [username, password] = KafkaServer::USER;
    KafkaLogin { mechanism, username: username.to_owned(), password: Secret::new(password) }
}

async fn ask(options: KafkaOptions) -> Result<Vec<String>, BusError> {
    let bus = Bus::connect_kafka(options)?;
    let topics = bus.topics().await;
    bus.close().await;
    topics
}

#[tokio::test(flavor = "multi_thread")]
async fn events_pass_with_tls_and_every_kind_of_login() {
    let Some(certificates) = Certificates::make() else { return };
    let server = certificates.server("localhost", false).await;
    let fixture = Fixture::on_kafka(certificates.options(&server)).await;
    let (relay, consumer) = (fixture.relay(), fixture.consumer("group", paint()));
    fixture.outbox_append(&steps(&fixture, 10, 2)).await;
    fixture.effects_become(20).await;
    relay.stop().await;
    consumer.stop().await;

    for mechanism in [SaslMechanism::Plain, SaslMechanism::ScramSha256] {
        let login = Some(login(mechanism));
        let topics = ask(KafkaOptions { login, ..certificates.options(&server) }).await;
        assert!(!topics.unwrap().is_empty(), "{mechanism:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_on_either_side_are_refused() {
    let Some(certificates) = Certificates::make() else { return };
    let server = certificates.server("localhost", false).await;
    let right = certificates.options(&server);
    let other = CertificateAuthority::create("another authority").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let others = Certificates { authority: other, folder };
    let wrong_authority = others.encryption(&others.authority);
    let system = KafkaEncryption { root_path: None, identity: None };
    let encryptions = [None, Some(wrong_authority), Some(system)];
    let by_encryption = encryptions.map(|encryption| KafkaOptions { encryption, ..right.clone() });
    let password = Secret::new("wrong");
    let wrong = KafkaLogin { password, ..login(SaslMechanism::ScramSha512) };
    let nobody = KafkaLogin { username: "nobody".to_owned(), ..login(SaslMechanism::Plain) };
    let by_login =
        [None, Some(wrong), Some(nobody)].map(|login| KafkaOptions { login, ..right.clone() });
    // Each is asked until its patience ends: all at once.
    let all = by_encryption.into_iter().chain(by_login);
    let answers = join_all(all.map(async |options| (options.clone(), ask(options).await))).await;
    for (options, answer) in answers {
        assert!(answer.is_err(), "{options:?}");
    }
    ask(right).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_under_another_name_is_refused_and_one_that_asks_gets_our_certificate() {
    let Some(certificates) = Certificates::make() else { return };
    let server = certificates.server("kafka.example", false).await;
    assert!(ask(certificates.options(&server)).await.is_err());
    drop(server);

    let server = certificates.server("localhost", true).await;
    let without = certificates.options(&server);
    // Control: without one the broker refuses us.
    assert!(ask(without.clone()).await.is_err());
    let own = certificates.authority.issue(&["client"]).unwrap();
    let identity = Some(IdentityFiles {
        certificate: certificates.write("own.pem", &own.certificate_pem),
        key: certificates.write("own.key", &own.key_pem),
    });
    let encryption = without.encryption.clone().map(|with| KafkaEncryption { identity, ..with });
    ask(KafkaOptions { encryption, ..without }).await.unwrap();
}

//! TLS between our own processes: who is verified, and certificates that are replaced.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use urr_service::{
    Caller, HttpClient, HttpListener, RemoteService, Upstream, UpstreamError, serve,
};
use urr_tls::{CertificateAuthority, ClientTls, IdentityFiles, TrustFiles};

use crate::fixture::{PATIENT, Ping, TestService, context};

/// A service behind TLS, with its files.
struct TlsService {
    fixture: TestService,
    folder: TempDir,
    port: u16,
}

impl TlsService {
    /// With a certificate of this authority for `localhost`.
    async fn start(authority: &CertificateAuthority) -> TlsService {
        let folder = tempfile::tempdir().unwrap();
        issue(folder.path(), authority);
        let files = IdentityFiles {
            certificate: folder.path().join("own.pem"),
            key: folder.path().join("own.key"),
        };
        let fixture = TestService::open();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let listener = HttpListener::with_tls(listener, urr_tls::server_config(&files).unwrap());
        let router = fixture.service.network_router(&fixture.credentials);
        tokio::spawn(serve(listener, router, CancellationToken::new(), PATIENT));
        TlsService { fixture, folder, port }
    }

    /// Asks over a new connection, as a client that trusts what the file holds.
    async fn ask(&self, scheme: &str, host: &str, roots: &Path) -> Result<(), UpstreamError> {
        let tls = ClientTls::trusting(TrustFiles::File(roots.to_owned()));
        let client = HttpClient::with_tls(urr_tls::client_config(&tls).unwrap());
        self.ask_by(client, scheme, host).await
    }

    async fn ask_by(
        &self,
        client: HttpClient,
        scheme: &str,
        host: &str,
    ) -> Result<(), UpstreamError> {
        let remote = RemoteService {
            urls: format!("{scheme}://{host}:{}", self.port).parse().unwrap(),
            credential: self.fixture.credentials.for_call(Caller::Queue, "fixture"),
            client,
        };
        let upstream = Upstream::remote(Caller::Queue, "fixture", remote, &self.fixture.kit);
        let answer = upstream.ask(&Ping {}, &context()).await?;
        assert_eq!(answer, json!({"caller": "queue"}));
        Ok(())
    }

    fn write(&self, name: &str, text: &str) -> std::path::PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

fn issue(folder: &Path, authority: &CertificateAuthority) {
    let issued = authority.issue(&["localhost"]).unwrap();
    for (name, text) in [("own.key", issued.key_pem), ("own.pem", issued.certificate_pem)] {
        fs::write(folder.join("new"), text).unwrap();
        fs::rename(folder.join("new"), folder.join(name)).unwrap();
    }
}

fn authority(name: &str) -> CertificateAuthority {
    CertificateAuthority::create(name).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_is_called_only_if_its_certificate_is_right() {
    let right = authority("right");
    let service = TlsService::start(&right).await;
    let roots = service.write("ca.pem", right.certificate_pem());
    service.ask("https", "localhost", &roots).await.unwrap();
    let other = service.write("other.pem", authority("other").certificate_pem());
    let is_refused = |answer: Result<(), UpstreamError>| match answer {
        Err(UpstreamError::Unreachable { source, .. }) => {
            urr_tls::is_certificate_refused(source.as_ref())
        }
        _ => false,
    };
    assert!(is_refused(service.ask("https", "localhost", &other).await));
    assert!(is_refused(service.ask("https", "127.0.0.1", &roots).await), "a wrong name");
    let of_the_web = service.ask_by(HttpClient::new(), "https", "localhost").await;
    assert!(is_refused(of_the_web));
    // Without TLS nothing is understood.
    service.ask("http", "localhost", &roots).await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread")]
async fn replaced_certificates_count_without_a_restart() {
    let (old, new) = (authority("old"), authority("new"));
    let service = TlsService::start(&old).await;
    let old_roots = service.write("old.pem", old.certificate_pem());
    let new_roots = service.write("new.pem", new.certificate_pem());
    service.ask("https", "localhost", &old_roots).await.unwrap();
    service.ask("https", "localhost", &new_roots).await.unwrap_err();
    // A client that lives through the change trusts both meanwhile.
    let both = format!("{}{}", old.certificate_pem(), new.certificate_pem());
    let roots = service.write("both.pem", old.certificate_pem());
    let tls = urr_tls::client_config(&ClientTls::trusting(TrustFiles::File(roots))).unwrap();
    service.ask_by(HttpClient::with_tls(tls.clone()), "https", "localhost").await.unwrap();
    service.write("both.pem", &both);
    issue(service.folder.path(), &new);
    let deadline = Instant::now() + Duration::from_secs(30);
    while service.ask("https", "localhost", &new_roots).await.is_err() {
        assert!(Instant::now() < deadline, "the new certificate is never shown");
    }
    service.ask("https", "localhost", &old_roots).await.unwrap_err();
    while service.ask_by(HttpClient::with_tls(tls.clone()), "https", "localhost").await.is_err() {
        assert!(Instant::now() < deadline, "the new authority is never trusted");
    }
}

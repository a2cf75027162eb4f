//! Calls to a server of this process: plain, and with certificates that are trusted or not.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::body::Body;
use axum::http::header::LOCATION;
use axum::routing::{get, post};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

const PATIENCE: Duration = Duration::from_secs(10);

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound address");
    (listener, address)
}

async fn serve(router: Router) -> String {
    let (listener, address) = listen().await;
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

async fn get_at(url: &str) -> Result<OutboundResponse, OutboundError> {
    Outbound::new().get_json(url, HeaderMap::new(), PATIENCE).await
}

#[tokio::test]
async fn a_form_and_json_arrive_as_they_were_meant() {
    let echo = Router::new().route(
        "/echo",
        post(|headers: HeaderMap, body: String| async move {
            let kind = headers[CONTENT_TYPE].to_str().expect("text").to_owned();
            let accept = headers[ACCEPT].to_str().expect("text").to_owned();
            axum::Json([kind, accept, body])
        }),
    );
    let url = format!("{}/echo", serve(echo).await);
    let outbound = Outbound::new();
    let fields = [("code", "a b&c=d"), ("이름", "민아")];
    let answer = outbound.post_form(&url, HeaderMap::new(), &fields, PATIENCE).await;
    let [kind, accept, body]: [String; 3] = answer.expect("an answer").json().expect("JSON");
    assert_eq!(kind, "application/x-www-form-urlencoded");
    assert_eq!(accept, "application/json");
    assert_eq!(body, "code=a+b%26c%3Dd&%EC%9D%B4%EB%A6%84=%EB%AF%BC%EC%95%84");
    let answer = outbound.post_json(&url, HeaderMap::new(), &["x"], PATIENCE).await;
    let [kind, _, body]: [String; 3] = answer.expect("an answer").json().expect("JSON");
    assert_eq!((kind.as_str(), body.as_str()), ("application/json", r#"["x"]"#));
}

#[tokio::test]
async fn a_status_is_an_answer_and_a_redirect_is_not_followed() {
    let visits = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&visits);
    let router = Router::new()
        .route("/from", get(|| async { (StatusCode::FOUND, [(LOCATION, "/to")]) }))
        .route(
            "/to",
            get(|| async move {
                counted.fetch_add(1, Ordering::SeqCst);
                "{}"
            }),
        );
    let base = serve(router).await;
    let answer = get_at(&format!("{base}/from")).await.expect("an answer");
    assert_eq!(answer.status, StatusCode::FOUND);
    assert_eq!(visits.load(Ordering::SeqCst), 0);
    let answer = get_at(&format!("{base}/missing")).await.expect("an answer");
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert!(answer.json::<u32>().is_err());
}

#[tokio::test]
async fn plain_http_goes_to_this_machine_only() {
    for url in [
        "http://accounts.example/token",
        "http://127.0.0.1.example/token",
        "http://localhost.example/token",
        "http://10.0.0.1/token",
        "http://[2001:db8::1]/token",
        "http://0.0.0.0/token",
        "ftp://127.0.0.1/token",
        "https://user:secret@accounts.example/token",
        "http://evil.example@127.0.0.1/token",
        "/token",
        "not an address",
        "",
    ] {
        let refused = get_at(url).await.expect_err(url);
        assert!(matches!(refused, OutboundError::RefusedAddress(_)), "{url}: {refused:?}");
        assert!(refused.is_unsent());
    }
    for url in ["http://127.0.0.1:9/x", "http://[::1]:9/x", "http://localhost:9/x", "https://a/x"] {
        assert!(parse_address(url, Plain::Loopback).is_ok(), "{url}");
    }
}

#[tokio::test]
async fn servers_of_the_operator_may_be_called_over_plain_http() {
    assert!(parse_address("http://sqs:9324/x", Plain::Anywhere).is_ok());
    for url in ["ftp://sqs/x", "http://user:secret@sqs/x", "/x"] {
        assert!(parse_address(url, Plain::Anywhere).is_err(), "{url}");
    }
}

#[tokio::test]
async fn an_answer_has_a_greatest_length() {
    let sized = |bytes: usize| get(move || async move { Body::from(vec![b'x'; bytes]) });
    let router = Router::new()
        .route("/fits", sized(BODY_BYTES_MAX))
        .route("/bursts", sized(BODY_BYTES_MAX + 1));
    let base = serve(router).await;
    let fits = get_at(&format!("{base}/fits")).await.expect("an answer");
    assert_eq!(fits.body.len(), BODY_BYTES_MAX);
    let bursts = get_at(&format!("{base}/bursts")).await.expect_err("it is too long");
    assert!(matches!(bursts, OutboundError::TooLarge));
    assert!(!bursts.is_unsent());
}

#[tokio::test]
async fn nobody_listening_means_that_nothing_was_sent() {
    let (listener, address) = listen().await;
    drop(listener);
    let refused = get_at(&format!("http://{address}/")).await.expect_err("nobody listens");
    assert!(matches!(refused, OutboundError::Unreachable(_)), "{refused:?}");
    assert!(refused.is_unsent());
}

#[tokio::test]
async fn silence_after_the_request_may_mean_that_it_happened() {
    let (listener, address) = listen().await;
    let silent = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a caller");
        let mut head = [0_u8; 4];
        stream.read_exact(&mut head).await.expect("the request arrives");
        assert_eq!(&head, b"GET ");
        stream
    });
    let (url, brief) = (format!("http://{address}/"), Duration::from_millis(300));
    let call = Outbound::new().get_json(&url, HeaderMap::new(), brief).await;
    let late = call.expect_err("nobody answers");
    assert!(matches!(late, OutboundError::Timeout), "{late:?}");
    assert!(!late.is_unsent());
    drop(silent.await.expect("the request was seen"));
}

#[tokio::test]
async fn a_connection_that_breaks_may_mean_that_it_happened() {
    for begin in [&b""[..], b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc"] {
        let (listener, address) = listen().await;
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a caller");
            let mut request = [0_u8; 1024];
            assert!(stream.read(&mut request).await.expect("a request") > 0);
            stream.write_all(begin).await.expect("the beginning of an answer");
            stream.shutdown().await.expect("the end");
        });
        let broken = get_at(&format!("http://{address}/")).await.expect_err("it broke");
        assert!(matches!(broken, OutboundError::Interrupted(_)), "{broken:?}");
        assert!(!broken.is_unsent());
    }
}

/// A server with a certificate that it signed itself, and the certificate.
async fn serve_tls(name: &str) -> (SocketAddr, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = rustls::crypto::ring::default_provider();
    let config = ServerConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .expect("a certificate with its key");
    let (acceptor, (listener, address)) = (TlsAcceptor::from(Arc::new(config)), listen().await);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut request = [0_u8; 1024];
            if stream.read(&mut request).await.is_ok_and(|read| read > 0) {
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ntrue";
                stream.write_all(answer).await.expect("the answer is taken");
            }
        }
    });
    (address, certificate)
}

fn trusting(certificate: CertificateDer<'static>) -> Outbound {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("a certificate");
    Outbound::trusting(roots)
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused() {
    let (address, certificate) = serve_tls("localhost").await;
    let url = format!("https://localhost:{}/", address.port());
    let refused = get_at(&url).await.expect_err("a self-signed certificate");
    assert!(matches!(refused, OutboundError::Unreachable(_)), "{refused:?}");
    let answer = trusting(certificate).get_json(&url, HeaderMap::new(), PATIENCE).await;
    let answer = answer.expect("who trusts this certificate gets through");
    assert!(answer.json::<bool>().expect("JSON"));
}

#[tokio::test]
async fn a_certificate_of_another_name_is_refused() {
    let (address, certificate) = serve_tls("elsewhere.example").await;
    let url = format!("https://localhost:{}/", address.port());
    let answer = trusting(certificate).get_json(&url, HeaderMap::new(), PATIENCE).await;
    assert!(matches!(answer, Err(OutboundError::Unreachable(_))), "{answer:?}");
}

//! Requests that two readers could divide in two ways, over a real connection.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{TestGateway, soon};

const SMUGGLED: &str = "GET /api/artists/smuggled HTTP/1.1\r\nhost: x\r\n\r\n";

/// Sends bytes, ends its side, and reads until the server closes.
async fn talk(gateway: &TestGateway, sent: &str) -> String {
    let mut stream = TcpStream::connect(gateway.listen().await).await.unwrap();
    stream.write_all(sent.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut received = Vec::new();
    // A server that closes with unread bytes resets the connection; what came before counts.
    let _ended = soon(stream.read_to_end(&mut received)).await;
    String::from_utf8_lossy(&received).into_owned()
}

fn post(headers: &str, body: &str) -> String {
    format!("POST /api/auth/verify-token HTTP/1.1\r\nhost: x\r\n{headers}\r\n\r\n{body}{SMUGGLED}")
}

#[tokio::test]
async fn requests_with_two_readings_are_the_last_of_their_connection() {
    let gateway = TestGateway::new();
    let cases = [
        (
            "length, then chunks",
            post("content-length: 5\r\ntransfer-encoding: chunked", "0\r\n\r\n"),
        ),
        (
            "chunks, then length",
            post("transfer-encoding: chunked\r\ncontent-length: 5", "0\r\n\r\n"),
        ),
        (
            "chunks, then a short length",
            post("transfer-encoding: chunked\r\ncontent-length: 0", "0\r\n\r\n"),
        ),
        ("chunks", post("transfer-encoding: chunked", "0\r\n\r\n")),
        ("two lengths", post("content-length: 0\r\ncontent-length: 47", "")),
        ("two lengths in one", post("content-length: 0, 47", "")),
        ("a signed length", post("content-length: +0", "")),
        ("a negative length", post("content-length: -1", "")),
        ("a length in hexadecimal", post("content-length: 0x0", "")),
        ("a length that is none", post("content-length: ", "")),
        (
            "chunks twice",
            post("transfer-encoding: chunked\r\ntransfer-encoding: chunked", "0\r\n\r\n"),
        ),
        ("chunks and then something", post("transfer-encoding: chunked, identity", "0\r\n\r\n")),
        ("no chunks", post("transfer-encoding: xchunked", "0\r\n\r\n")),
        ("identity", post("transfer-encoding: identity\r\ncontent-length: 0", "")),
        ("a blank before the colon", post("transfer-encoding : chunked", "0\r\n\r\n")),
        ("a vertical tab", post("transfer-encoding: \u{b}chunked", "0\r\n\r\n")),
        ("a bad chunk size", post("transfer-encoding: chunked", "zz\r\n\r\n")),
        ("a negative chunk size", post("transfer-encoding: chunked", "-1\r\n\r\n")),
        ("a huge chunk size", post("transfer-encoding: chunked", "fffffffffffffffff\r\n\r\n")),
        ("a chunk without its end", post("transfer-encoding: chunked", "1\r\nxx\r\n0\r\n\r\n")),
        ("a folded header", post("x-a: 1\r\n transfer-encoding: chunked", "0\r\n\r\n")),
        ("a header without a name", post(": chunked", "")),
        ("a header with a zero byte", post("x-a: \0", "")),
        (
            "chunks in HTTP/1.0",
            post("transfer-encoding: chunked", "0\r\n\r\n").replacen("HTTP/1.1", "HTTP/1.0", 1),
        ),
        ("another version", post("content-length: 0", "").replacen("HTTP/1.1", "HTTP/3.7", 1)),
        ("two blanks", post("content-length: 0", "").replacen("POST /", "POST  /", 1)),
    ];
    for (name, sent) in cases {
        let received = soon(talk(&gateway, &sent)).await;
        let answers = received.matches("HTTP/1.").count();
        assert!(answers <= 1, "{name}: {received}");
        let seen = gateway.services.received();
        let smuggled = seen.iter().any(|seen| seen.path.contains("smuggled"));
        assert!(!smuggled, "{name}: {received}");
        assert!(!received.contains("smuggled"), "{name}: {received}");
        if answers == 1 {
            let closes = received.to_lowercase().contains("connection: close");
            assert!(closes, "{name} is answered without closing: {received}");
        }
    }
}

/// Control: two unambiguous requests have two responses.
#[tokio::test]
async fn requests_with_one_reading_follow_each_other() {
    let gateway = TestGateway::new();
    let received = talk(&gateway, &post("content-length: 2", "{}")).await;
    assert_eq!(received.matches("HTTP/1.1 200 OK").count(), 2, "{received}");
    assert!(gateway.services.received().iter().any(|seen| seen.path.contains("smuggled")));
}

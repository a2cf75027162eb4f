//! A server that speaks SMTP, with all that can go wrong with it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use urr_kernel::{Language, Secret, Timestamp, Uuid};
use urr_mail::{
    DeliveryOutcome, InvalidSmtpSettings, MailId, MailKind, OutgoingMail, SmtpCredentials,
    SmtpSecurity, SmtpSettings, SmtpTransport, TemplateData, TrustedCertificates, render,
};
use urr_test::engines::block_on;

use crate::fixture::{FROM, PUBLIC_URL, plain};
use crate::smtp_server::{Fault, ServerSecurity, SmtpServer};

fn mail(address: &str) -> OutgoingMail {
    let data =
        TemplateData { event_title: Some("한강의 밤".to_owned()), ..TemplateData::default() };
    OutgoingMail {
        id: MailId(Uuid::from_u128(7)),
        kind: MailKind::Purchase,
        language: Language::Korean,
        address: address.to_owned(),
        rendered: render(MailKind::Purchase, Language::Korean, &data, PUBLIC_URL),
        created_at: "2026-12-01T12:00:00Z".parse::<Timestamp>().unwrap(),
        attachment: None,
    }
}

#[test]
fn a_title_begins_no_header_and_every_line_is_plain() {
    block_on(async {
        let server = SmtpServer::open().await;
        let smtp = SmtpTransport::new(plain(&server)).unwrap();
        let title = "한강의 밤\r\nBcc: everybody@example.com\r\n\r\n.\r\nQUIT".repeat(9);
        let data = TemplateData { event_title: Some(title), ..TemplateData::default() };
        let rendered = render(MailKind::Purchase, Language::Korean, &data, PUBLIC_URL);
        let outcome = smtp.send(&OutgoingMail { rendered, ..mail("mina@example.com") }).await;
        assert_eq!(outcome, DeliveryOutcome::Sent);
        let [taken] = server.accepted().try_into().unwrap();
        assert_eq!(taken.header("Bcc"), "");
        assert!(taken.raw.is_ascii() && taken.raw.lines().all(|line| line.len() <= 998));
        let (head, _) = taken.raw.split_once("\r\n\r\n").unwrap();
        let names: Vec<&str> = head
            .lines()
            .filter(|line| !line.starts_with(' '))
            .map(|line| line.split_once(':').unwrap().0)
            .collect();
        assert_eq!(
            names,
            [
                "From",
                "To",
                "Subject",
                "Message-ID",
                "Date",
                "Auto-Submitted",
                "MIME-Version",
                "Content-Type",
            ]
        );
    });
}

async fn send(smtp: &SmtpTransport) -> DeliveryOutcome {
    smtp.send(&mail("mina@example.com")).await
}

fn unclear(code: &str) -> DeliveryOutcome {
    DeliveryOutcome::Unclear { code: code.to_owned() }
}

fn refused(code: &str) -> DeliveryOutcome {
    DeliveryOutcome::Refused { code: code.to_owned() }
}

fn server_settings(server: &SmtpServer, security: SmtpSecurity) -> SmtpSettings {
    let settings = SmtpSettings::new("localhost", server.port, FROM);
    let trusted_certificates = vec![server.certificate.clone()].into();
    SmtpSettings { security, trusted_certificates, ..settings }
}

#[test]
fn only_the_recipient_or_the_mail_is_refused_for_good() {
    block_on(async {
        for (fault, outcome) in [
            (Fault::Greeting("421 4.3.2 too busy"), unclear("CONNECT 421")),
            (Fault::Greeting("554 5.7.1 not you"), unclear("CONNECT 554")),
            (Fault::Sender("451 4.3.0 later"), unclear("MAIL 451")),
            (Fault::Sender("550 5.7.1 not from you"), unclear("MAIL 550")),
            (Fault::Recipient("451 4.7.1 greylisted"), unclear("RECIPIENT 451")),
            (Fault::Recipient("452 4.2.2 full"), unclear("RECIPIENT 452")),
            (Fault::Recipient("530 5.7.0 log in"), unclear("RECIPIENT 530")),
            (Fault::Recipient("550 5.1.1 <mina@example.com>?"), refused("RECIPIENT 550")),
            (Fault::Recipient("553 5.1.3 no address"), refused("RECIPIENT 553")),
            (Fault::Content("452 4.3.1 no room"), unclear("CONTENT 452")),
            (Fault::Content("554 5.7.1 unwanted"), refused("CONTENT 554")),
            (Fault::Cut, unclear("CONTENT BROKEN")),
            (Fault::Reset, unclear("CONTENT BROKEN")),
        ] {
            let server = SmtpServer::open().await;
            let smtp = SmtpTransport::new(plain(&server)).unwrap();
            server.fail([fault]);
            assert_eq!(send(&smtp).await, outcome, "{fault:?}");
            assert_eq!(send(&smtp).await, DeliveryOutcome::Sent, "after {fault:?}");
            let copies = if fault == Fault::Reset { 2 } else { 1 };
            assert_eq!(server.accepted().len(), copies, "{fault:?}");
        }
    });
}

#[test]
fn what_a_server_says_is_not_repeated_because_it_may_name_somebody() {
    block_on(async {
        let server = SmtpServer::open().await;
        let smtp = SmtpTransport::new(plain(&server)).unwrap();
        server.fail([Fault::Recipient("550 5.1.1 mina@example.com is unknown")]);
        let outcome = format!("{:?}", send(&smtp).await);
        assert!(!outcome.contains("mina"), "{outcome}");
    });
}

#[test]
fn a_server_that_does_not_answer_is_left_after_the_time_for_a_mail() {
    block_on(async {
        let server = SmtpServer::open().await;
        let timeout = Duration::from_millis(200);
        let smtp = SmtpTransport::new(SmtpSettings { timeout, ..plain(&server) }).unwrap();
        server.fail([Fault::Slow]);
        assert_eq!(send(&smtp).await, unclear("TIMEOUT"));
        assert_eq!(send(&smtp).await, DeliveryOutcome::Sent);
    });
}

#[test]
fn a_closed_port_and_an_unknown_name_are_no_refusal() {
    block_on(async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let settings = SmtpSettings::new("127.0.0.1", port, FROM);
        let settings = SmtpSettings { security: SmtpSecurity::None, ..settings };
        let outcome = send(&SmtpTransport::new(settings).unwrap()).await;
        let not_reached = DeliveryOutcome::NotReached { code: "CONNECT BROKEN".to_owned() };
        assert_eq!(outcome, not_reached);
        let unknown = SmtpTransport::new(SmtpSettings::new("post.invalid", 25, FROM)).unwrap();
        assert_eq!(send(&unknown).await, not_reached);
    });
}

#[test]
fn a_wrong_password_is_no_fault_of_the_mail() {
    block_on(async {
        let server = SmtpServer::with(ServerSecurity::Plain, Some(("urr", "right"))).await;
        for (password, outcome) in [
            (Some("right"), DeliveryOutcome::Sent),
            (Some("wrong"), unclear("LOGIN 535")),
            (None, unclear("MAIL 530")),
        ] {
            let credentials = password.map(|password| SmtpCredentials {
                username: "urr".to_owned(),
                password: Secret::new(password),
            });
            let smtp = SmtpTransport::new(SmtpSettings { credentials, ..plain(&server) }).unwrap();
            assert_eq!(send(&smtp).await, outcome, "{password:?}");
        }
        assert_eq!(server.accepted().len(), 1);
    });
}

#[test]
fn over_tls_and_after_starttls_nothing_of_a_mail_can_be_read_on_the_way() {
    block_on(async {
        for (server_security, security) in [
            (ServerSecurity::StartTls, SmtpSecurity::StartTls),
            (ServerSecurity::Tls, SmtpSecurity::Tls),
        ] {
            let server = SmtpServer::with(server_security, Some(("urr", "right"))).await;
            let password = Secret::new("right");
            let credentials = Some(SmtpCredentials { username: "urr".to_owned(), password });
            let settings = SmtpSettings { credentials, ..server_settings(&server, security) };
            assert_eq!(
                send(&SmtpTransport::new(settings).unwrap()).await,
                DeliveryOutcome::Sent,
                "{security:?}"
            );
            assert_eq!(server.accepted().len(), 1);
            let plainly = server.commands().join(" ");
            assert!(!plainly.contains("AUTH") && !plainly.contains("mina"), "{plainly}");
        }
    });
}

#[test]
fn without_the_protection_that_is_wanted_nothing_is_sent() {
    block_on(async {
        let bare = SmtpServer::with(ServerSecurity::Plain, Some(("urr", "right"))).await;
        let smtp = SmtpTransport::new(server_settings(&bare, SmtpSecurity::StartTls)).unwrap();
        assert_eq!(send(&smtp).await, unclear("STARTTLS UNSUPPORTED"));
        assert!(!bare.commands().join(" ").contains("MAIL"));

        let stranger = SmtpServer::with(ServerSecurity::StartTls, None).await;
        let settings = SmtpSettings {
            trusted_certificates: Vec::new().into(),
            ..server_settings(&stranger, SmtpSecurity::StartTls)
        };
        let outcome = send(&SmtpTransport::new(settings).unwrap()).await;
        assert!(matches!(outcome, DeliveryOutcome::NotReached { .. }), "{outcome:?}");
        assert_eq!(stranger.accepted(), []);
    });
}

/// The control is the mail before.
#[test]
fn an_authority_that_is_replaced_counts_for_the_next_connection() {
    block_on(async {
        for (server_security, security) in [
            (ServerSecurity::StartTls, SmtpSecurity::StartTls),
            (ServerSecurity::Tls, SmtpSecurity::Tls),
        ] {
            let server = SmtpServer::with(server_security, None).await;
            let trusted = Arc::new(Mutex::new(Vec::new()));
            let read = Arc::clone(&trusted);
            let settings = SmtpSettings {
                trusted_certificates: TrustedCertificates::read_by(move || {
                    read.lock().unwrap().clone()
                }),
                ..server_settings(&server, security)
            };
            let smtp = SmtpTransport::new(settings).unwrap();
            let outcome = send(&smtp).await;
            assert!(matches!(outcome, DeliveryOutcome::NotReached { .. }), "{outcome:?}");
            trusted.lock().unwrap().push(server.certificate.clone());
            assert_eq!(send(&smtp).await, DeliveryOutcome::Sent);
        }
    });
}

#[test]
fn mails_go_unprotected_to_this_machine_only() {
    for (host, is_allowed) in
        [("127.0.0.1", true), ("localhost", true), ("::1", true), ("post.example", false)]
    {
        let settings = SmtpSettings::new(host, 25, FROM);
        let made = SmtpTransport::new(SmtpSettings { security: SmtpSecurity::None, ..settings });
        assert_eq!(made.is_ok(), is_allowed, "{host}");
        assert!(SmtpTransport::new(SmtpSettings::new(host, 25, FROM)).is_ok(), "{host} with TLS");
    }
    for from in ["", "tickets", "a b@c", "x <y"] {
        let made = SmtpTransport::new(SmtpSettings::new("localhost", 25, from));
        assert!(matches!(made, Err(InvalidSmtpSettings::From(_))), "{from:?}");
    }
}

#[test]
fn an_address_that_is_none_is_refused_and_begins_no_command() {
    block_on(async {
        let server = SmtpServer::open().await;
        let smtp = SmtpTransport::new(plain(&server)).unwrap();
        for address in ["none", "a@b>\r\nRCPT TO:<c@d", "a@b\r\nDATA", "a@b c", "", "<a@b>"] {
            let outcome = smtp.send(&mail(address)).await;
            assert_eq!(outcome, refused("INVALID_ADDRESS"), "{address:?}");
        }
        assert_eq!(server.connections(), 0);
    });
}

#[test]
fn a_connection_is_used_again_and_another_one_taken_when_it_was_closed() {
    block_on(async {
        let server = SmtpServer::open().await;
        let smtp = SmtpTransport::new(plain(&server)).unwrap();
        assert_eq!(send(&smtp).await, DeliveryOutcome::Sent);
        assert_eq!(send(&smtp).await, DeliveryOutcome::Sent);
        assert_eq!(server.connections(), 1);
        // What is refused on a connection that was open is asked for once more on a new one.
        server.fail([Fault::Sender("421 4.4.2 you were silent for too long")]);
        assert_eq!(send(&smtp).await, DeliveryOutcome::Sent);
        assert_eq!(server.connections(), 2);
        smtp.close_idle();
        assert_eq!(send(&smtp).await, DeliveryOutcome::Sent);
        assert_eq!((server.connections(), server.accepted().len()), (3, 4));
    });
}

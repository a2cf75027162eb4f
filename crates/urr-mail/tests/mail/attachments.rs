//! Tickets as a PDF in the mail of a purchase.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use urr_kernel::{DomainEvent, Uuid};
use urr_mail::{Mail, MailKind, MailStatus};
use urr_test::engines::contains;

use crate::contract;
use crate::fixture::{World, send};
use crate::peers::DOCUMENT;
use crate::smtp_server::{AcceptedMail, Fault, SmtpServer};

fn has_tickets(mail: &AcceptedMail) -> bool {
    mail.raw.contains("application/pdf") && mail.raw.contains(DOCUMENT)
}

/// Whether the mail says that the tickets are attached. The text is what administrators see.
async fn sent_with(world: &World, server: &SmtpServer, mail: &Mail) -> bool {
    assert_eq!(world.reload(mail).await.status, MailStatus::Sent);
    has_tickets(server.accepted().last().unwrap())
}

/// Tickets that were given away to nobody with an account, and their reservation.
fn given_away(world: &World) -> (DomainEvent, Uuid) {
    let bought = world.confirmed(world.ids.next_id());
    let reservation_id = bought.data["reservationId"].as_str().unwrap().parse().unwrap();
    (world.event("COMPLIMENTARY_ISSUED", bought.data), reservation_id)
}

contract! {
    async fn the_mail_of_a_purchase_has_the_tickets_in_the_language_of_their_owner(world: World) {
        let server = SmtpServer::open().await;
        let mail = world.purchase().await;
        world.peers.register(mail.user_id, "mina@example.com", "en");
        assert_eq!(send(&world.service_over(&server)).await, 1);
        assert!(sent_with(&world, &server, &mail).await);
        assert_eq!(world.peers.documents(), [(mail.user_id, "en".to_owned())]);
        let raw = &server.accepted()[0].raw;
        assert!(raw.contains("tickets-R-1.pdf") && raw.contains("attached as a PDF"), "{raw}");
        // The control: other mails have none.
        let waiting = world.register_user("waiting@example.com");
        world.consume(&world.admission_near(waiting)).await.unwrap();
        assert_eq!(send(&world.service_over(&server)).await, 1);
        assert!(!has_tickets(server.accepted().last().unwrap()));
        assert_eq!(world.peers.documents().len(), 1);
    }

    async fn a_guest_without_an_account_gets_complimentary_tickets_once(world: World) {
        let server = SmtpServer::open().await;
        let mails = world.service_over(&server);
        let (issued, reservation_id) = given_away(&world);
        world.peers.invite(reservation_id, "guest@example.com");
        world.peers.ticket_unavailable(true);
        // The event comes twice.
        world.consume(&issued).await.unwrap();
        world.consume(&issued).await.unwrap();
        assert_eq!(send(&mails).await, 1);
        let waiting = &world.all().await[0];
        assert_eq!((waiting.kind, waiting.attempts), (MailKind::Complimentary, 0));
        assert!(server.accepted().is_empty(), "the address is not known yet");
        world.peers.ticket_unavailable(false);
        world.clock.advance(Duration::from_mins(1));
        // The server does not take it at first.
        server.fail([Fault::Recipient("451 4.7.1 greylisted")]);
        assert_eq!(send(&mails).await, 1);
        assert!(server.accepted().is_empty());
        world.clock.advance(Duration::from_hours(1));
        assert_eq!(send(&mails).await, 1);
        world.clock.advance(Duration::from_hours(1));
        assert_eq!(send(&mails).await, 0, "once");
        let [accepted] = &server.accepted()[..] else { panic!("one mail") };
        assert!(accepted.to.contains("guest@example.com") && has_tickets(accepted));
        assert_eq!(world.peers.documents().last().unwrap().1, "ko");
        let stored = world.stored_bytes();
        assert!(!contains(&stored, "guest@example.com"), "addresses are not stored");
        assert!(contains(&stored, "R-7ZQ0-M4KD-91XA"), "control: what is stored is found");
        // The control: without an address and an account nobody is written to.
        let (other, _) = given_away(&world);
        world.consume(&other).await.unwrap();
        send(&mails).await;
        assert_eq!(server.accepted().len(), 1);
        let dropped = world.all().await.remove(0);
        let reason = dropped.last_error.as_deref();
        assert_eq!((dropped.status, reason), (MailStatus::Dropped, Some("NO_ACCOUNT")));
    }

    async fn a_guest_is_told_that_the_tickets_are_void_or_the_event_moved(world: World) {
        let server = SmtpServer::open().await;
        let mails = world.service_over(&server);
        let (issued, reservation_id) = given_away(&world);
        world.peers.invite(reservation_id, "guest@example.com");
        let mut moved = issued.data.clone();
        moved["previousStartsAt"] = json!("2026-12-20T10:30:00Z");
        moved["startsAt"] = json!("2026-12-24T10:30:00Z");
        moved["isFreeToCancel"] = json!(false);
        world.consume(&world.event("RESERVATION_RESCHEDULED", moved)).await.unwrap();
        let mut revoked = issued.data.clone();
        revoked["reason"] = json!("공연 취소");
        let revoked = world.event("RESERVATION_CANCELLED", revoked);
        world.consume(&revoked).await.unwrap();
        assert_eq!(send(&mails).await, 2);
        let accepted = server.accepted();
        assert_eq!(accepted.len(), 2);
        assert!(accepted.iter().all(|mail| mail.to.contains("guest@example.com")));
        assert!(!accepted.iter().any(has_tickets));
        // The control: whoever was erased is not written to.
        world.peers.erase_guest(reservation_id);
        let mut again = revoked.data.clone();
        again["reservationId"] = json!(reservation_id);
        world.consume(&world.event("RESERVATION_RESCHEDULED", {
            again["previousStartsAt"] = json!("2026-12-24T10:30:00Z");
            again["startsAt"] = json!("2026-12-25T10:30:00Z");
            again["isFreeToCancel"] = json!(false);
            again
        })).await.unwrap();
        send(&mails).await;
        assert_eq!(server.accepted().len(), 2);
    }

    /// The page with the tickets needs an account, so a guest needs them in the mail.
    async fn the_mail_to_a_guest_waits_longer_for_its_tickets(world: World) {
        let server = SmtpServer::open().await;
        let mails = world.service_over(&server);
        let (issued, reservation_id) = given_away(&world);
        world.peers.invite(reservation_id, "guest@example.com");
        world.peers.documents_unavailable(true);
        world.consume(&issued).await.unwrap();
        send(&mails).await;
        world.clock.advance(Duration::from_hours(1));
        send(&mails).await;
        assert!(server.accepted().is_empty());
        world.peers.documents_unavailable(false);
        world.clock.advance(Duration::from_mins(1));
        send(&mails).await;
        assert!(has_tickets(&server.accepted()[0]));
    }

    /// Whoever has the codes can enter: neither the rows nor the log keep them.
    async fn tickets_are_not_stored_with_the_mail(world: World) {
        let server = SmtpServer::open().await;
        let mail = world.purchase().await;
        send(&world.service_over(&server)).await;
        let stored = world.reload(&mail).await;
        let text = format!("{stored:?} {}", json!(stored.template_data));
        assert!(!text.contains("PDF") && !text.contains(&STANDARD.encode(DOCUMENT)), "{text}");
    }

    async fn a_mail_waits_for_its_tickets_and_then_goes_without_them(world: World) {
        let server = SmtpServer::open().await;
        let mails = world.service_over(&server);
        let mail = world.purchase().await;
        world.peers.documents_unavailable(true);
        assert_eq!(send(&mails).await, 1);
        let waiting = world.reload(&mail).await;
        assert_eq!((waiting.status, waiting.attempts), (MailStatus::Waiting, 0));
        assert_eq!(waiting.last_error.as_deref(), Some("TICKET_UNAVAILABLE"));
        world.clock.advance(Duration::from_mins(10));
        assert_eq!(send(&mails).await, 1);
        assert!(!sent_with(&world, &server, &mail).await);
        // The control: with an answer in time they are attached.
        let mail = world.purchase().await;
        send(&mails).await;
        world.peers.documents_unavailable(false);
        world.clock.advance(Duration::from_mins(1));
        assert_eq!(send(&mails).await, 1);
        assert!(sent_with(&world, &server, &mail).await);
    }

    /// The new owner gets the tickets, with other codes, by a mail of their own.
    async fn whoever_has_sold_the_tickets_on_does_not_get_them(world: World) {
        let server = SmtpServer::open().await;
        let mails = world.service_over(&server);
        let mail = world.purchase().await;
        server.fail([Fault::Recipient("451 4.7.1 greylisted")]);
        assert_eq!(send(&mails).await, 1);
        assert_eq!(server.accepted().len(), 0);
        world.peers.sell_on(mail.template_data.reservation_id.unwrap());
        world.clock.advance(Duration::from_hours(1));
        assert_eq!(send(&mails).await, 1);
        assert!(!sent_with(&world, &server, &mail).await);
    }
}

//! Tickets as a PDF in the mail of a purchase.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use urr_mail::{Mail, MailStatus};

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

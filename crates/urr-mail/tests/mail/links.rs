//! Links that are sent by mail, and addresses that nobody has verified.

use std::time::Duration;

use base64::Engine;
use serde_json::json;
use urr_kernel::{DomainEvent, Uuid};
use urr_mail::{Mail, MailFilter, MailKind, MailStatus};
use urr_service::Page;

use crate::contract;
use crate::fixture::{World, send};
use crate::smtp_server::SmtpServer;

const TOKEN: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0";
const HOUR: Duration = Duration::from_secs(60 * 60);

fn issued(world: &World, user_id: Uuid, kind: &str) -> (Uuid, DomainEvent) {
    let link_id = world.ids.next_id();
    let data = json!({"linkId": link_id, "userId": user_id, "kind": kind});
    (link_id, world.event("ACCOUNT_LINK_ISSUED", data))
}

/// The parts of a mail that are in Base64, as text.
fn decoded(raw: &str) -> String {
    let parts = raw.split("\r\n\r\n").filter_map(|part| {
        let text: String = part.split("\r\n--").next()?.split_whitespace().collect();
        let bytes = base64::engine::general_purpose::STANDARD.decode(text).ok()?;
        String::from_utf8(bytes).ok()
    });
    format!("{raw}{}", parts.collect::<String>())
}

async fn only(world: &World) -> Mail {
    let mut mails = world.all().await;
    assert_eq!(mails.len(), 1, "{mails:?}");
    mails.remove(0)
}

contract! {
    async fn a_link_is_in_its_mail_and_nowhere_else(world: World) {
        let server = SmtpServer::open().await;
        let mails = world.service_over(&server);
        let user_id = world.register_user("mina@example.com");
        world.peers.set_verified(user_id, false);
        let (link_id, event) = issued(&world, user_id, "verify_email");
        world.peers.issue_link(link_id, TOKEN);
        for _ in 0..2 {
            world.consume(&event).await.unwrap();
        }
        assert_eq!(send(&mails).await, 1);
        let [received] = server.accepted().try_into().unwrap();
        let body = decoded(&received.raw);
        assert!(body.contains(&format!("https://urr.example/verify#{TOKEN}")), "{body}");
        let mail = only(&world).await;
        assert_eq!((mail.kind, mail.status), (MailKind::EmailVerification, MailStatus::Sent));
        // What administrators see of it, and what is stored, opens nothing.
        let shown = format!("{:?} {mail:?}", mails.preview_mail(&mail));
        assert!(!shown.contains(TOKEN), "{shown}");
        assert!(shown.contains("https://urr.example/verify"), "{shown}");
        let own = MailFilter { without_links: true, ..MailFilter::default() };
        let (listed, total) = mails.list_mails(own, Page::new(1, 10)).await.unwrap();
        assert_eq!((listed.len(), total), (0, 0), "it is no notification");
    }

    async fn a_link_that_is_void_by_now_is_not_sent(world: World) {
        let user_id = world.register_user("mina@example.com");
        let (link_id, event) = issued(&world, user_id, "reset_password");
        world.consume(&event).await.unwrap();
        world.peers.issue_link(link_id, TOKEN);
        world.peers.auth_unavailable(true);
        send(&world.service).await;
        assert_eq!(only(&world).await.status, MailStatus::Waiting, "it waits for the answer");
        world.peers.auth_unavailable(false);
        world.peers.void_link(link_id);
        world.clock.advance(Duration::from_secs(60));
        send(&world.service).await;
        let mail = only(&world).await;
        assert_eq!(mail.status, MailStatus::Dropped);
        assert_eq!(mail.last_error.as_deref(), Some("LINK_VOID"));
        let (_, late) = issued(&world, user_id, "reset_password");
        world.consume(&late).await.unwrap();
        world.clock.advance(HOUR / 2);
        send(&world.service).await;
        let dropped = world.all().await.remove(0);
        assert_eq!(dropped.last_error.as_deref(), Some("TOO_LATE"));
    }

    /// The control is the address that is verified: the same mail leaves at once.
    async fn an_address_that_nobody_verified_gets_no_other_mail(world: World) {
        let user_id = world.register_user("mina@example.com");
        world.peers.set_verified(user_id, false);
        world.consume(&world.confirmed(user_id)).await.unwrap();
        send(&world.service).await;
        let mail = only(&world).await;
        assert_eq!((mail.status, mail.attempts), (MailStatus::Waiting, 0));
        assert_eq!(mail.last_error.as_deref(), Some("ADDRESS_NOT_VERIFIED"));
        world.clock.advance(HOUR);
        send(&world.service).await;
        assert_eq!(only(&world).await.status, MailStatus::Waiting);
        world.peers.set_verified(user_id, true);
        world.clock.advance(HOUR);
        send(&world.service).await;
        assert_eq!(only(&world).await.status, MailStatus::Sent, "they verified it in time");
    }

    async fn a_mail_waits_for_an_address_for_a_day(world: World) {
        let user_id = world.register_user("mina@example.com");
        world.peers.set_verified(user_id, false);
        world.consume(&world.confirmed(user_id)).await.unwrap();
        let mut tries = 0;
        while only(&world).await.status == MailStatus::Waiting {
            tries += send(&world.service).await;
            world.clock.advance(HOUR / 4);
            assert!(tries < 40, "the pauses grow");
        }
        let mail = only(&world).await;
        assert_eq!(mail.status, MailStatus::Dropped);
        assert_eq!(mail.last_error.as_deref(), Some("ADDRESS_NOT_VERIFIED"));
    }
}

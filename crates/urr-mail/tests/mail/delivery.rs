//! How mails are sent: once, again after a crash, later, never.

use std::collections::HashSet;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use urr_kernel::{Language, Uuid};
use urr_mail::{ATTEMPTS_MAX, MailKind, MailStatus, RetryMailError};

use crate::contract;
use crate::fixture::{LEASE_OVER, send};
use crate::smtp_server::{Fault, SmtpServer};

const ADMIN: Uuid = Uuid::from_u128(77);
const HALF_MINUTE: Duration = Duration::from_secs(30);
const GREYLISTED: Fault = Fault::Recipient("451 4.7.1 come back later");
/// So many connections fail; more than a mail has attempts.
const AWAY: usize = 20;

contract! {
    async fn the_mail_of_a_purchase_has_what_the_ticket_service_knows(world: World) {
        let server = SmtpServer::open().await;
        let mail = world.purchase().await;
        assert_eq!(send(&world.service_over(&server)).await, 1);
        let mail = world.reload(&mail).await;
        assert_eq!((mail.status, mail.attempts), (MailStatus::Sent, 1));
        assert_eq!((mail.language, mail.last_error), (Some(Language::Korean), None));
        let [taken] = server.accepted().try_into().unwrap();
        let way = (taken.from.as_str(), taken.to.as_str());
        assert_eq!(way, ("tickets@urr.example", "mina@example.com"));
        assert_eq!(taken.header("Message-ID"), format!("<mail-{}@urr.example>", mail.id));
        assert_eq!(taken.header("Auto-Submitted"), "auto-generated");
        assert!(taken.header("Content-Type").starts_with("multipart/mixed"));
        assert_eq!(mail.template_data.event_title.as_deref(), Some("한강의 밤"));
        assert_eq!(mail.template_data.places, ["1층 A-12-7", "1층 A-12-8"]);
        assert_eq!(send(&world.service_over(&server)).await, 0, "what was sent is not due");
        assert_eq!(server.accepted().len(), 1);
    }

    async fn the_language_is_that_of_the_account(world: World) {
        let mail = world.purchase().await;
        world.peers.register(mail.user_id, "mina@example.com", "en");
        assert_eq!(send(&world.service).await, 1);
        let mail = world.reload(&mail).await;
        assert_eq!(mail.language, Some(Language::English));
        let subject = world.service.preview_mail(&mail).subject;
        assert_eq!(subject, "Your booking is confirmed: 한강의 밤");
    }

    async fn while_one_process_sends_a_mail_no_other_does(world: World) {
        let server = SmtpServer::open().await;
        let mail = world.purchase().await;
        server.fail([Fault::Held]);
        let first = tokio::spawn({
            let mails = world.service_over(&server);
            async move { send(&mails).await }
        });
        server.arrived(1).await;
        assert_eq!(send(&world.service_over(&server)).await, 0);
        server.release();
        assert_eq!(first.await.unwrap(), 1);
        assert_eq!(server.accepted().len(), 1);
        assert_eq!(world.reload(&mail).await.status, MailStatus::Sent);
    }

    /// The control of the case above: nothing but the lease keeps the second one away.
    async fn without_a_lease_two_processes_send_the_same_mail(world: World) {
        let server = SmtpServer::open().await;
        let mail = world.purchase().await;
        server.fail([Fault::Held]);
        let first = tokio::spawn({
            let mails = world.service_over(&server);
            async move { send(&mails).await }
        });
        server.arrived(1).await;
        world.clock.advance(LEASE_OVER);
        assert_eq!(send(&world.service_over(&server)).await, 1);
        server.release();
        assert_eq!(first.await.unwrap(), 1);
        let ids: HashSet<String> =
            server.accepted().iter().map(|taken| taken.header("Message-ID")).collect();
        assert_eq!((server.accepted().len(), ids.len()), (2, 1));
        assert_eq!(world.reload(&mail).await.status, MailStatus::Sent);
    }

    async fn a_storm_is_sent_by_four_processes_once_and_in_small_parts(world: World) {
        let server = SmtpServer::open().await;
        for number in 0..300 {
            let user_id = world.register_user(&format!("fan{number}@example.com"));
            world.consume(&world.admission_near(user_id)).await.unwrap();
        }
        let senders: Vec<_> = (0..4)
            .map(|_| {
                let mails = world.service_over(&server);
                tokio::spawn(async move { send(&mails).await })
            })
            .collect();
        let mut sent = 0;
        for sender in senders {
            sent += sender.await.unwrap();
        }
        let taken = server.accepted();
        let addresses: HashSet<&str> = taken.iter().map(|taken| taken.to.as_str()).collect();
        assert_eq!((sent, taken.len(), addresses.len()), (300, 300, 300));
        assert!(world.peers.asked().iter().all(|ids| *ids <= 32), "a batch is small");
        assert!(server.open_max() <= 32, "eight at a time and process: {}", server.open_max());
        assert!(server.connections() < 300, "connections are used again");
    }

    async fn reminders_of_admissions_are_sent_before_a_storm_of_other_mails(world: World) {
        for _ in 0..40 {
            world.purchase().await;
        }
        world.clock.advance(Duration::from_secs(60));
        let server = SmtpServer::open().await;
        let urgent = world.register_user("urgent@example.com");
        world.consume(&world.admission_near(urgent)).await.unwrap();
        server.fail([Fault::Held; 32]);
        let sending = tokio::spawn({
            let mails = world.service_over(&server);
            async move { send(&mails).await }
        });
        server.arrived(8).await;
        let told_first = server.accepted().iter().any(|taken| taken.to == "urgent@example.com");
        assert!(told_first, "{:?}", server.accepted());
        (0..32).for_each(|_| server.release());
        assert_eq!(sending.await.unwrap(), 41);
    }

    /// The peers of a mail may take long: its own time begins with its own attempt.
    async fn a_mail_that_waited_for_its_batch_is_not_sent_twice(world: World) {
        let server = SmtpServer::open().await;
        for _ in 0..9 {
            world.purchase().await;
        }
        server.fail([Fault::Held; 9]);
        let first = tokio::spawn({
            let mails = world.service_over(&server);
            async move { send(&mails).await }
        });
        server.arrived(8).await;
        world.clock.advance(LEASE_OVER - Duration::from_secs(60));
        server.release();
        server.arrived(9).await;
        world.clock.advance(Duration::from_secs(90));
        let other = SmtpServer::open().await;
        assert_eq!(send(&world.service_over(&other)).await, 7, "those that are overdue");
        let last = server.accepted().remove(8).header("Message-ID");
        assert!(other.accepted().iter().all(|taken| taken.header("Message-ID") != last));
        (0..8).for_each(|_| server.release());
        assert_eq!(first.await.unwrap(), 9);
    }

    async fn a_process_that_lost_the_lease_before_the_attempt_does_not_send(world: World) {
        let (server, other) = (SmtpServer::open().await, SmtpServer::open().await);
        for _ in 0..9 {
            world.purchase().await;
        }
        server.fail([Fault::Held; 8]);
        let first = tokio::spawn({
            let mails = world.service_over(&server);
            async move { send(&mails).await }
        });
        server.arrived(8).await;
        world.clock.advance(LEASE_OVER);
        other.fail([Fault::Held; 9]);
        let second = tokio::spawn({
            let mails = world.service_over(&other);
            async move { send(&mails).await }
        });
        other.arrived(8).await;
        (0..8).for_each(|_| other.release());
        other.arrived(9).await;
        (0..8).for_each(|_| server.release());
        assert_eq!(first.await.unwrap(), 9);
        assert_eq!(server.accepted().len(), 8, "the ninth is in other hands");
        other.release();
        assert_eq!(second.await.unwrap(), 9);
    }

    async fn a_sent_mail_is_marked_so_even_if_another_process_has_the_lease(world: World) {
        let (server, other) = (SmtpServer::open().await, SmtpServer::open().await);
        let mail = world.purchase().await;
        server.fail([Fault::Held]);
        let first = tokio::spawn({
            let mails = world.service_over(&server);
            async move { send(&mails).await }
        });
        server.arrived(1).await;
        world.clock.advance(LEASE_OVER);
        other.fail([GREYLISTED]);
        assert_eq!(send(&world.service_over(&other)).await, 1);
        server.release();
        assert_eq!(first.await.unwrap(), 1);
        assert_eq!(world.reload(&mail).await.status, MailStatus::Sent);
    }

    async fn after_a_crash_before_it_was_noted_a_mail_comes_again_with_its_id(world: World) {
        let server = SmtpServer::open().await;
        let mail = world.purchase().await;
        server.fail([Fault::Held]);
        let crashing = tokio::spawn({
            let mails = world.service_over(&server);
            async move { send(&mails).await }
        });
        server.arrived(1).await;
        crashing.abort();
        assert!(crashing.await.unwrap_err().is_cancelled());
        assert_eq!(world.reload(&mail).await.status, MailStatus::Waiting);
        assert_eq!(send(&world.service_over(&server)).await, 0, "nobody knows yet that it has crashed");
        world.clock.advance(LEASE_OVER);
        assert_eq!(send(&world.service_over(&server)).await, 1);
        let [first, second] = server.accepted().try_into().unwrap();
        assert_eq!(first.header("Message-ID"), second.header("Message-ID"));
        assert_eq!(first.header("Date"), second.header("Date"));
        let mail = world.reload(&mail).await;
        assert_eq!((mail.status, mail.attempts), (MailStatus::Sent, 2));
    }

    async fn a_mail_whose_attempts_never_finish_is_given_up(world: World) {
        let server = SmtpServer::open().await;
        let mail = world.purchase().await;
        for crashes in 1..=ATTEMPTS_MAX {
            server.fail([Fault::Held]);
            let mails = world.service_over(&server);
            let crashing = tokio::spawn(async move { send(&mails).await });
            server.arrived(usize::try_from(crashes).unwrap()).await;
            crashing.abort();
            drop(crashing.await);
            world.clock.advance(LEASE_OVER);
        }
        assert_eq!(send(&world.service_over(&server)).await, 1);
        let mail = world.reload(&mail).await;
        assert_eq!((mail.status, mail.attempts), (MailStatus::Failed, ATTEMPTS_MAX));
        assert_eq!(mail.last_error.as_deref(), Some("NEVER_FINISHED"));
        assert_eq!(server.accepted().len(), usize::try_from(ATTEMPTS_MAX).unwrap());
    }

    async fn a_mail_is_tried_for_half_a_day_and_then_given_up(world: World) {
        let server = SmtpServer::open().await;
        let mails = world.service_over(&server);
        mails.service(&crate::fixture::kit(&world.clock, &world.ids, world.metrics.clone()));
        let mail = world.purchase().await;
        let mut pauses = Vec::new();
        for attempt in 1..ATTEMPTS_MAX {
            server.fail([GREYLISTED]);
            assert_eq!(send(&mails).await, 1);
            let now = world.reload(&mail).await;
            assert_eq!((now.status, now.attempts), (MailStatus::Waiting, attempt));
            assert_eq!(now.last_error.as_deref(), Some("RECIPIENT 451"));
            let pause = Duration::try_from(now.due_at - world.clock.now()).unwrap();
            world.clock.advance(pause - Duration::from_millis(1));
            assert_eq!(send(&mails).await, 0, "it is not due yet");
            world.clock.advance(Duration::from_millis(1));
            pauses.push(pause.as_secs());
        }
        assert_eq!(pauses, [30, 60, 120, 240, 480, 960, 1920, 3840, 7680, 15360, 21600]);
        server.fail([GREYLISTED]);
        assert_eq!(send(&mails).await, 1);
        let given_up = world.reload(&mail).await;
        assert_eq!((given_up.status, given_up.attempts), (MailStatus::Failed, ATTEMPTS_MAX));
        world.clock.advance(Duration::from_secs(24 * 60 * 60));
        assert_eq!(send(&mails).await, 0);
        assert_eq!(server.accepted(), []);
        let figure = world.metric("urr_mails_failed_total{kind=\"purchase\"}");
        assert_eq!(figure.as_deref(), Some("1"));
    }

    async fn a_mail_that_succeeds_after_some_attempts_was_sent_once(world: World) {
        let server = SmtpServer::open().await;
        let mails = world.service_over(&server);
        let mail = world.purchase().await;
        server.fail([GREYLISTED, GREYLISTED]);
        for pause in [30, 60] {
            assert_eq!(send(&mails).await, 1);
            world.clock.advance(Duration::from_secs(pause));
        }
        assert_eq!(send(&mails).await, 1);
        let mail = world.reload(&mail).await;
        assert_eq!((mail.status, mail.attempts, mail.last_error), (MailStatus::Sent, 3, None));
        assert_eq!(server.accepted().len(), 1);
        assert_eq!(world.peers.summaries(), 1, "the ticket server is asked once");
    }

    async fn while_the_auth_is_unavailable_mails_wait_and_that_is_no_attempt(world: World) {
        let mail = world.purchase().await;
        world.peers.auth_unavailable(true);
        for _ in 0..2 * ATTEMPTS_MAX {
            assert_eq!(send(&world.service).await, 1);
            assert_eq!(send(&world.service).await, 0);
            world.clock.advance(HALF_MINUTE);
        }
        let waiting = world.reload(&mail).await;
        assert_eq!((waiting.status, waiting.attempts), (MailStatus::Waiting, 0));
        assert_eq!(waiting.last_error.as_deref(), Some("AUTH_UNAVAILABLE"));
        world.peers.auth_unavailable(false);
        assert_eq!(send(&world.service).await, 1);
        assert_eq!(world.reload(&mail).await.status, MailStatus::Sent);
    }

    async fn while_the_server_cannot_be_reached_mails_wait_and_that_is_no_attempt(world: World) {
        let server = SmtpServer::open().await;
        let mails = world.service_over(&server);
        let (first, second) = (world.purchase().await, world.purchase().await);
        server.fail([Fault::Greeting("this is no SMTP"); AWAY]);
        assert_eq!(send(&mails).await, 2);
        for _ in server.connections()..AWAY {
            assert_eq!(send(&mails).await, 0, "no mail is tried");
        }
        for mail in [&first, &second] {
            let waiting = world.reload(mail).await;
            assert_eq!((waiting.status, waiting.attempts), (MailStatus::Waiting, 0));
        }
        assert_eq!(send(&mails).await, 2, "at once, when the server is back");
        for mail in [&first, &second] {
            let sent = world.reload(mail).await;
            assert_eq!((sent.status, sent.attempts), (MailStatus::Sent, 1));
        }
        assert_eq!(server.accepted().len(), 2);
    }

    async fn while_the_ticket_service_is_unavailable_purchases_wait_and_reminders_do_not(world: World) {
        let mail = world.purchase().await;
        let waiting = world.register_user("waiting@example.com");
        world.consume(&world.admission_near(waiting)).await.unwrap();
        world.peers.ticket_unavailable(true);
        assert_eq!(send(&world.service).await, 2);
        let purchase = world.reload(&mail).await;
        assert_eq!((purchase.status, purchase.attempts), (MailStatus::Waiting, 0));
        assert_eq!(purchase.last_error.as_deref(), Some("TICKET_UNAVAILABLE"));
        assert_eq!(world.of_kind(MailKind::AdmissionNear).await[0].status, MailStatus::Sent);
        world.peers.ticket_unavailable(false);
        world.clock.advance(HALF_MINUTE);
        assert_eq!(send(&world.service).await, 1);
        assert_eq!(world.reload(&mail).await.status, MailStatus::Sent);
    }

    async fn the_mail_of_an_unknown_reservation_says_less(world: World) {
        let mut event = world.confirmed(world.register_user("mina@example.com"));
        event.data["reservationId"] = serde_json::json!(world.ids.next_id());
        world.consume(&event).await.unwrap();
        assert_eq!(send(&world.service).await, 1);
        let mail = world.all().await.remove(0);
        assert_eq!((mail.status, &mail.template_data.venue_name), (MailStatus::Sent, &None));
        assert!(!world.service.preview_mail(&mail).text.contains("장소"));
    }

    async fn a_user_without_account_or_address_gets_no_mail(world: World) {
        let gone = world.purchase().await;
        world.peers.forget(gone.user_id);
        let without = world.purchase().await;
        world.peers.register(without.user_id, " ", "ko");
        let server = SmtpServer::open().await;
        assert_eq!(send(&world.service_over(&server)).await, 2);
        for (mail, reason) in [(&gone, "NO_ACCOUNT"), (&without, "NO_ADDRESS")] {
            let mail = world.reload(mail).await;
            assert_eq!((mail.status, mail.attempts), (MailStatus::Dropped, 0));
            assert_eq!(mail.last_error.as_deref(), Some(reason));
        }
        assert_eq!(server.accepted(), []);
    }

    async fn a_reminder_that_comes_too_late_is_dropped(world: World) {
        let user_id = world.register_user("mina@example.com");
        world.consume(&world.admission_near(user_id)).await.unwrap();
        let late = world.all().await.remove(0);
        let half_an_hour = Duration::from_secs(30 * 60);
        world.clock.advance(half_an_hour - Duration::from_secs(1));
        world.consume(&world.admission_near(user_id)).await.unwrap();
        world.clock.advance(Duration::from_secs(1));
        assert_eq!(send(&world.service).await, 2);
        let dropped = world.reload(&late).await;
        let end = (dropped.status, dropped.last_error.as_deref());
        assert_eq!(end, (MailStatus::Dropped, Some("TOO_LATE")));
        let told = world.all().await.iter().filter(|mail| mail.status == MailStatus::Sent).count();
        assert_eq!(told, 1, "the second one was in time");
    }

    async fn only_what_has_failed_is_tried_again_at_once_and_from_the_beginning(world: World) {
        let server = SmtpServer::open().await;
        let mails = world.service_over(&server);
        let mail = world.purchase().await;
        assert_eq!(mails.retry_mail(mail.id, ADMIN).await, Err(RetryMailError::NotFailed));
        server.fail([Fault::Recipient("550 5.1.1 no such user")]);
        send(&mails).await;
        assert_eq!(world.reload(&mail).await.status, MailStatus::Failed);
        let retried = mails.retry_mail(mail.id, ADMIN).await.unwrap();
        assert_eq!((retried.status, retried.attempts), (MailStatus::Waiting, 0));
        assert_eq!(mails.retry_mail(mail.id, ADMIN).await, Err(RetryMailError::NotFailed));
        assert_eq!(send(&mails).await, 1);
        assert_eq!(world.reload(&mail).await.status, MailStatus::Sent);
        assert_eq!(mails.retry_mail(mail.id, ADMIN).await, Err(RetryMailError::NotFailed));
        let nobody = urr_mail::MailId(Uuid::from_u128(5));
        assert_eq!(mails.retry_mail(nobody, ADMIN).await, Err(RetryMailError::NotFound));
        assert_eq!(server.accepted().len(), 1);
    }

    async fn after_three_months_what_has_ended_is_forgotten(world: World) {
        let sent = world.purchase().await;
        send(&world.service).await;
        world.peers.auth_unavailable(true);
        let waiting = world.purchase().await;
        let days = |days: u64| Duration::from_secs(days * 24 * 60 * 60);
        world.clock.advance(days(90));
        assert_eq!(world.service.purge_mails().await.unwrap(), 0, "the last moment");
        world.clock.advance(Duration::from_secs(1));
        assert_eq!(world.service.purge_mails().await.unwrap(), 1);
        assert_eq!(world.service.find_mail(sent.id).await.unwrap(), None);
        assert!(world.service.find_mail(waiting.id).await.unwrap().is_some(), "it was never sent");
    }

    async fn a_stopped_process_leases_nothing(world: World) {
        let mail = world.purchase().await;
        let stop = CancellationToken::new();
        stop.cancel();
        assert_eq!(world.service.send_due(&stop).await.unwrap(), 0);
        assert_eq!(world.reload(&mail).await.status, MailStatus::Waiting);
        // The jobs end by themselves then.
        world.service.run_jobs(stop).await;
    }

    async fn operators_see_what_waits_what_was_sent_and_what_was_dropped(world: World) {
        world.service.service(&crate::fixture::kit(&world.clock, &world.ids, world.metrics.clone()));
        let gone = world.purchase().await;
        world.peers.forget(gone.user_id);
        world.purchase().await;
        assert_eq!(world.service.count_waiting().await.unwrap(), 2);
        assert_eq!(world.metric("urr_mails_waiting").as_deref(), Some("2"));
        send(&world.service).await;
        assert_eq!(world.service.count_waiting().await.unwrap(), 0);
        let figure = |name: &str| {
            world.metric(&format!("urr_mails_{name}_total{{kind=\"purchase\"}}"))
        };
        assert_eq!(figure("sent").as_deref(), Some("1"));
        assert_eq!(figure("dropped").as_deref(), Some("1"));
        assert_eq!(world.metric("urr_mails_waiting").as_deref(), Some("0"));
    }
}

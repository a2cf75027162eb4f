//! How mails are sent: once, again after a crash, later, never.

use std::collections::HashSet;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use urr_kernel::Uuid;
use urr_mail::{ATTEMPTS_MAX, MailKind, MailLanguage, RetryError, MailStatus};

use crate::contract;
use crate::fixture::{LEASE_OVER, send};
use crate::smtp_server::{Fault, SmtpServer};

const HALF_MINUTE: Duration = Duration::from_secs(30);
const GREYLISTED: Fault = Fault::Recipient("451 4.7.1 come back later");

contract! {
    async fn a_purchase_is_told_with_what_the_ticket_office_knows(world: World) {
        let office = SmtpServer::open().await;
        let mail = world.purchase().await;
        assert_eq!(send(&world.by(&office)).await, 1);
        let mail = world.again(&mail).await;
        assert_eq!((mail.status, mail.attempts), (MailStatus::Sent, 1));
        assert_eq!((mail.language, mail.last_error), (Some(MailLanguage::Korean), None));
        let [taken] = office.taken().try_into().unwrap();
        let way = (taken.from.as_str(), taken.to.as_str());
        assert_eq!(way, ("tickets@urr.example", "mina@example.com"));
        assert_eq!(taken.header("Message-ID"), format!("<mail-{}@urr.example>", mail.id));
        assert_eq!(taken.header("Auto-Submitted"), "auto-generated");
        assert!(taken.header("Content-Type").starts_with("multipart/alternative"));
        assert_eq!(mail.data.event_title.as_deref(), Some("한강의 밤"));
        assert_eq!(mail.data.places, ["1층 A-12-7", "1층 A-12-8"]);
        assert_eq!(send(&world.by(&office)).await, 0, "what was sent is not due");
        assert_eq!(office.taken().len(), 1);
    }

    async fn the_language_is_that_of_the_account(world: World) {
        let mail = world.purchase().await;
        world.peers.register(mail.user_id, "mina@example.com", "en");
        assert_eq!(send(&world.mails).await, 1);
        let mail = world.again(&mail).await;
        assert_eq!(mail.language, Some(MailLanguage::English));
        let subject = world.mails.preview(&mail).subject;
        assert_eq!(subject, "Your booking is confirmed: 한강의 밤");
    }

    async fn while_one_process_sends_a_mail_no_other_does(world: World) {
        let office = SmtpServer::open().await;
        let mail = world.purchase().await;
        office.fail([Fault::Held]);
        let first = tokio::spawn({
            let mails = world.by(&office);
            async move { send(&mails).await }
        });
        office.arrived(1).await;
        assert_eq!(send(&world.by(&office)).await, 0);
        office.release();
        assert_eq!(first.await.unwrap(), 1);
        assert_eq!(office.taken().len(), 1);
        assert_eq!(world.again(&mail).await.status, MailStatus::Sent);
    }

    /// The control of the case above: nothing but the lease keeps the second one away.
    async fn without_a_lease_two_processes_send_the_same_mail(world: World) {
        let office = SmtpServer::open().await;
        let mail = world.purchase().await;
        office.fail([Fault::Held]);
        let first = tokio::spawn({
            let mails = world.by(&office);
            async move { send(&mails).await }
        });
        office.arrived(1).await;
        world.clock.advance(LEASE_OVER);
        assert_eq!(send(&world.by(&office)).await, 1);
        office.release();
        assert_eq!(first.await.unwrap(), 1);
        let ids: HashSet<String> =
            office.taken().iter().map(|taken| taken.header("Message-ID")).collect();
        assert_eq!((office.taken().len(), ids.len()), (2, 1));
        assert_eq!(world.again(&mail).await.status, MailStatus::Sent);
    }

    async fn a_storm_is_sent_by_four_processes_once_and_in_small_parts(world: World) {
        let office = SmtpServer::open().await;
        for number in 0..300 {
            let user_id = world.somebody(&format!("fan{number}@example.com"));
            world.hear(&world.admission_near(user_id)).await.unwrap();
        }
        let senders: Vec<_> = (0..4)
            .map(|_| {
                let mails = world.by(&office);
                tokio::spawn(async move { send(&mails).await })
            })
            .collect();
        let mut sent = 0;
        for sender in senders {
            sent += sender.await.unwrap();
        }
        let taken = office.taken();
        let addresses: HashSet<&str> = taken.iter().map(|taken| taken.to.as_str()).collect();
        assert_eq!((sent, taken.len(), addresses.len()), (300, 300, 300));
        assert!(world.peers.asked().iter().all(|ids| *ids <= 32), "a batch is small");
        assert!(office.open_max() <= 32, "eight at a time and process: {}", office.open_max());
        assert!(office.connections() < 300, "connections are used again");
    }

    async fn in_a_storm_whose_turn_is_near_is_told_first(world: World) {
        for _ in 0..40 {
            world.purchase().await;
        }
        world.clock.advance(Duration::from_secs(60));
        let office = SmtpServer::open().await;
        let urgent = world.somebody("urgent@example.com");
        world.hear(&world.admission_near(urgent)).await.unwrap();
        office.fail([Fault::Held; 32]);
        let sending = tokio::spawn({
            let mails = world.by(&office);
            async move { send(&mails).await }
        });
        office.arrived(8).await;
        let told_first = office.taken().iter().any(|taken| taken.to == "urgent@example.com");
        assert!(told_first, "{:?}", office.taken());
        (0..32).for_each(|_| office.release());
        assert_eq!(sending.await.unwrap(), 41);
    }

    /// The peers of a mail may take long: its own time begins with its own attempt.
    async fn a_mail_that_waited_for_its_neighbours_is_not_sent_twice(world: World) {
        let office = SmtpServer::open().await;
        for _ in 0..9 {
            world.purchase().await;
        }
        office.fail([Fault::Held; 9]);
        let first = tokio::spawn({
            let mails = world.by(&office);
            async move { send(&mails).await }
        });
        office.arrived(8).await;
        world.clock.advance(LEASE_OVER - Duration::from_secs(60));
        office.release();
        office.arrived(9).await;
        world.clock.advance(Duration::from_secs(90));
        let other = SmtpServer::open().await;
        assert_eq!(send(&world.by(&other)).await, 7, "those that are overdue");
        let last = office.taken().remove(8).header("Message-ID");
        assert!(other.taken().iter().all(|taken| taken.header("Message-ID") != last));
        (0..8).for_each(|_| office.release());
        assert_eq!(first.await.unwrap(), 9);
    }

    async fn whoever_has_lost_a_mail_before_the_attempt_does_not_send_it(world: World) {
        let (office, other) = (SmtpServer::open().await, SmtpServer::open().await);
        for _ in 0..9 {
            world.purchase().await;
        }
        office.fail([Fault::Held; 8]);
        let first = tokio::spawn({
            let mails = world.by(&office);
            async move { send(&mails).await }
        });
        office.arrived(8).await;
        world.clock.advance(LEASE_OVER);
        other.fail([Fault::Held; 9]);
        let second = tokio::spawn({
            let mails = world.by(&other);
            async move { send(&mails).await }
        });
        other.arrived(8).await;
        (0..8).for_each(|_| other.release());
        other.arrived(9).await;
        (0..8).for_each(|_| office.release());
        assert_eq!(first.await.unwrap(), 9);
        assert_eq!(office.taken().len(), 8, "the ninth is in other hands");
        other.release();
        assert_eq!(second.await.unwrap(), 9);
    }

    async fn that_a_mail_was_sent_is_noted_whoever_has_it_in_hand_now(world: World) {
        let (office, other) = (SmtpServer::open().await, SmtpServer::open().await);
        let mail = world.purchase().await;
        office.fail([Fault::Held]);
        let first = tokio::spawn({
            let mails = world.by(&office);
            async move { send(&mails).await }
        });
        office.arrived(1).await;
        world.clock.advance(LEASE_OVER);
        other.fail([GREYLISTED]);
        assert_eq!(send(&world.by(&other)).await, 1);
        office.release();
        assert_eq!(first.await.unwrap(), 1);
        assert_eq!(world.again(&mail).await.status, MailStatus::Sent);
    }

    async fn after_a_crash_before_it_was_noted_a_mail_comes_again_with_its_id(world: World) {
        let office = SmtpServer::open().await;
        let mail = world.purchase().await;
        office.fail([Fault::Held]);
        let crashing = tokio::spawn({
            let mails = world.by(&office);
            async move { send(&mails).await }
        });
        office.arrived(1).await;
        crashing.abort();
        assert!(crashing.await.unwrap_err().is_cancelled());
        assert_eq!(world.again(&mail).await.status, MailStatus::Waiting);
        assert_eq!(send(&world.by(&office)).await, 0, "nobody knows yet that it has crashed");
        world.clock.advance(LEASE_OVER);
        assert_eq!(send(&world.by(&office)).await, 1);
        let [first, second] = office.taken().try_into().unwrap();
        assert_eq!(first.header("Message-ID"), second.header("Message-ID"));
        assert_eq!(first.header("Date"), second.header("Date"));
        let mail = world.again(&mail).await;
        assert_eq!((mail.status, mail.attempts), (MailStatus::Sent, 2));
    }

    async fn who_never_comes_to_the_end_is_given_up(world: World) {
        let office = SmtpServer::open().await;
        let mail = world.purchase().await;
        for crashes in 1..=ATTEMPTS_MAX {
            office.fail([Fault::Held]);
            let mails = world.by(&office);
            let crashing = tokio::spawn(async move { send(&mails).await });
            office.arrived(usize::try_from(crashes).unwrap()).await;
            crashing.abort();
            drop(crashing.await);
            world.clock.advance(LEASE_OVER);
        }
        assert_eq!(send(&world.by(&office)).await, 1);
        let mail = world.again(&mail).await;
        assert_eq!((mail.status, mail.attempts), (MailStatus::Failed, ATTEMPTS_MAX));
        assert_eq!(mail.last_error.as_deref(), Some("NEVER_FINISHED"));
        assert_eq!(office.taken().len(), usize::try_from(ATTEMPTS_MAX).unwrap());
    }

    async fn a_mail_is_tried_for_half_a_day_and_then_given_up(world: World) {
        let office = SmtpServer::open().await;
        let mails = world.by(&office);
        mails.service(&crate::fixture::kit(&world.clock, &world.ids, world.metrics.clone()));
        let mail = world.purchase().await;
        let mut pauses = Vec::new();
        for attempt in 1..ATTEMPTS_MAX {
            office.fail([GREYLISTED]);
            assert_eq!(send(&mails).await, 1);
            let now = world.again(&mail).await;
            assert_eq!((now.status, now.attempts), (MailStatus::Waiting, attempt));
            assert_eq!(now.last_error.as_deref(), Some("RECIPIENT 451"));
            let pause = Duration::try_from(now.due_at - world.clock.now()).unwrap();
            world.clock.advance(pause - Duration::from_millis(1));
            assert_eq!(send(&mails).await, 0, "it is not due yet");
            world.clock.advance(Duration::from_millis(1));
            pauses.push(pause.as_secs());
        }
        assert_eq!(pauses, [30, 60, 120, 240, 480, 960, 1920, 3840, 7680, 15360, 21600]);
        office.fail([GREYLISTED]);
        assert_eq!(send(&mails).await, 1);
        let given_up = world.again(&mail).await;
        assert_eq!((given_up.status, given_up.attempts), (MailStatus::Failed, ATTEMPTS_MAX));
        world.clock.advance(Duration::from_secs(24 * 60 * 60));
        assert_eq!(send(&mails).await, 0);
        assert_eq!(office.taken(), []);
        let figure = world.figure("urr_mails_failed_total{kind=\"purchase\"}");
        assert_eq!(figure.as_deref(), Some("1"));
    }

    async fn who_comes_through_after_some_attempts_was_sent_once(world: World) {
        let office = SmtpServer::open().await;
        let mails = world.by(&office);
        let mail = world.purchase().await;
        office.fail([GREYLISTED, GREYLISTED]);
        for pause in [30, 60] {
            assert_eq!(send(&mails).await, 1);
            world.clock.advance(Duration::from_secs(pause));
        }
        assert_eq!(send(&mails).await, 1);
        let mail = world.again(&mail).await;
        assert_eq!((mail.status, mail.attempts, mail.last_error), (MailStatus::Sent, 3, None));
        assert_eq!(office.taken().len(), 1);
        assert_eq!(world.peers.summaries(), 1, "the ticket office is asked once");
    }

    async fn while_the_accounts_are_away_mails_wait_and_that_is_no_attempt(world: World) {
        let mail = world.purchase().await;
        world.peers.accounts_away(true);
        for _ in 0..2 * ATTEMPTS_MAX {
            assert_eq!(send(&world.mails).await, 1);
            assert_eq!(send(&world.mails).await, 0);
            world.clock.advance(HALF_MINUTE);
        }
        let waiting = world.again(&mail).await;
        assert_eq!((waiting.status, waiting.attempts), (MailStatus::Waiting, 0));
        assert_eq!(waiting.last_error.as_deref(), Some("ACCOUNTS_SILENT"));
        world.peers.accounts_away(false);
        assert_eq!(send(&world.mails).await, 1);
        assert_eq!(world.again(&mail).await.status, MailStatus::Sent);
    }

    async fn while_the_ticket_office_is_away_purchases_wait_and_turns_do_not(world: World) {
        let mail = world.purchase().await;
        let waiting = world.somebody("waiting@example.com");
        world.hear(&world.admission_near(waiting)).await.unwrap();
        world.peers.office_away(true);
        assert_eq!(send(&world.mails).await, 2);
        let purchase = world.again(&mail).await;
        assert_eq!((purchase.status, purchase.attempts), (MailStatus::Waiting, 0));
        assert_eq!(purchase.last_error.as_deref(), Some("OFFICE_SILENT"));
        assert_eq!(world.of_kind(MailKind::AdmissionNear).await[0].status, MailStatus::Sent);
        world.peers.office_away(false);
        world.clock.advance(HALF_MINUTE);
        assert_eq!(send(&world.mails).await, 1);
        assert_eq!(world.again(&mail).await.status, MailStatus::Sent);
    }

    async fn of_a_reservation_that_nobody_knows_the_mail_says_less(world: World) {
        let mut event = world.confirmed(world.somebody("mina@example.com"));
        event.data["reservationId"] = serde_json::json!(world.ids.next_id());
        world.hear(&event).await.unwrap();
        assert_eq!(send(&world.mails).await, 1);
        let mail = world.all().await.remove(0);
        assert_eq!((mail.status, &mail.data.venue_name), (MailStatus::Sent, &None));
        assert!(!world.mails.preview(&mail).text.contains("장소"));
    }

    async fn who_is_gone_or_has_no_address_is_not_written_to(world: World) {
        let gone = world.purchase().await;
        world.peers.forget(gone.user_id);
        let without = world.purchase().await;
        world.peers.register(without.user_id, " ", "ko");
        let office = SmtpServer::open().await;
        assert_eq!(send(&world.by(&office)).await, 2);
        for (mail, reason) in [(&gone, "NO_ACCOUNT"), (&without, "NO_ADDRESS")] {
            let mail = world.again(mail).await;
            assert_eq!((mail.status, mail.attempts), (MailStatus::Dropped, 0));
            assert_eq!(mail.last_error.as_deref(), Some(reason));
        }
        assert_eq!(office.taken(), []);
    }

    async fn a_turn_that_has_passed_is_not_told(world: World) {
        let user_id = world.somebody("mina@example.com");
        world.hear(&world.admission_near(user_id)).await.unwrap();
        let late = world.all().await.remove(0);
        let half_an_hour = Duration::from_secs(30 * 60);
        world.clock.advance(half_an_hour - Duration::from_secs(1));
        world.hear(&world.admission_near(user_id)).await.unwrap();
        world.clock.advance(Duration::from_secs(1));
        assert_eq!(send(&world.mails).await, 2);
        let dropped = world.again(&late).await;
        let end = (dropped.status, dropped.last_error.as_deref());
        assert_eq!(end, (MailStatus::Dropped, Some("TOO_LATE")));
        let told = world.all().await.iter().filter(|mail| mail.status == MailStatus::Sent).count();
        assert_eq!(told, 1, "the second one was in time");
    }

    async fn only_what_has_failed_is_tried_again_at_once_and_from_the_beginning(world: World) {
        let office = SmtpServer::open().await;
        let mails = world.by(&office);
        let mail = world.purchase().await;
        assert_eq!(mails.retry(mail.id).await, Err(RetryError::NotFailed));
        office.fail([Fault::Recipient("550 5.1.1 no such user")]);
        send(&mails).await;
        assert_eq!(world.again(&mail).await.status, MailStatus::Failed);
        let retried = mails.retry(mail.id).await.unwrap();
        assert_eq!((retried.status, retried.attempts), (MailStatus::Waiting, 0));
        assert_eq!(mails.retry(mail.id).await, Err(RetryError::NotFailed));
        assert_eq!(send(&mails).await, 1);
        assert_eq!(world.again(&mail).await.status, MailStatus::Sent);
        assert_eq!(mails.retry(mail.id).await, Err(RetryError::NotFailed));
        let nobody = urr_mail::MailId(Uuid::from_u128(5));
        assert_eq!(mails.retry(nobody).await, Err(RetryError::NotFound));
        assert_eq!(office.taken().len(), 1);
    }

    async fn after_three_months_what_has_ended_is_forgotten(world: World) {
        let sent = world.purchase().await;
        send(&world.mails).await;
        world.peers.accounts_away(true);
        let waiting = world.purchase().await;
        let days = |days: u64| Duration::from_secs(days * 24 * 60 * 60);
        world.clock.advance(days(90));
        assert_eq!(world.mails.purge().await.unwrap(), 0, "the last moment");
        world.clock.advance(Duration::from_secs(1));
        assert_eq!(world.mails.purge().await.unwrap(), 1);
        assert_eq!(world.mails.find(sent.id).await.unwrap(), None);
        assert!(world.mails.find(waiting.id).await.unwrap().is_some(), "it was never sent");
    }

    async fn who_is_told_to_stop_takes_nothing_in_hand(world: World) {
        let mail = world.purchase().await;
        let stop = CancellationToken::new();
        stop.cancel();
        assert_eq!(world.mails.send_due(&stop).await.unwrap(), 0);
        assert_eq!(world.again(&mail).await.status, MailStatus::Waiting);
        // The jobs end by themselves then.
        world.mails.run_jobs(stop).await;
    }

    async fn operators_see_what_waits_what_was_sent_and_what_was_dropped(world: World) {
        world.mails.service(&crate::fixture::kit(&world.clock, &world.ids, world.metrics.clone()));
        let gone = world.purchase().await;
        world.peers.forget(gone.user_id);
        world.purchase().await;
        assert_eq!(world.mails.count_waiting().await.unwrap(), 2);
        assert_eq!(world.figure("urr_mails_waiting").as_deref(), Some("2"));
        send(&world.mails).await;
        assert_eq!(world.mails.count_waiting().await.unwrap(), 0);
        let figure = |name: &str| {
            world.figure(&format!("urr_mails_{name}_total{{kind=\"purchase\"}}"))
        };
        assert_eq!(figure("sent").as_deref(), Some("1"));
        assert_eq!(figure("dropped").as_deref(), Some("1"));
        assert_eq!(world.figure("urr_mails_waiting").as_deref(), Some("0"));
    }
}

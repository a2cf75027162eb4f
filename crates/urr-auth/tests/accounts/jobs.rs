//! What is forgotten and put aside in time.

use tokio_util::sync::CancellationToken;
use urr_auth::{AccountStatus, ClientInfo, LogoutRequest, PurgeCounts};

use crate::contract;
use crate::fixture::{DAY, MINUTE, PASSWORD, World};

contract! {
    async fn what_has_expired_is_forgotten_and_nothing_before(world: World) {
        let session = world.register("mina@example.com").await;
        let next = world.auth.refresh(&session.refresh_token, ClientInfo::default()).await.unwrap();
        let refresh_token = Some(next.refresh_token);
        world.auth.logout(LogoutRequest { refresh_token, ..LogoutRequest::default() }).await.unwrap();
        assert_eq!(world.auth.purge_expired(100).await.unwrap(), PurgeCounts::default());
        world.clock.advance(30 * MINUTE);
        let purged = world.auth.purge_expired(100).await.unwrap();
        assert_eq!(purged, PurgeCounts { revoked_access_tokens: 2, ..PurgeCounts::default() });
        world.clock.advance(7 * DAY);
        let purged = world.auth.purge_expired(1).await.unwrap();
        let bounded = PurgeCounts {
            refresh_tokens: 1,
            account_links: 1,
            link_requests: 1,
            ..PurgeCounts::default()
        };
        assert_eq!(purged, bounded);
        assert_eq!(world.auth.purge_expired(100).await.unwrap().refresh_tokens, 1);
        world.clock.advance(365 * DAY);
        let purged = world.auth.purge_expired(100).await.unwrap();
        assert_eq!(purged, PurgeCounts { login_history: 1, ..PurgeCounts::default() });
    }

    async fn numbers_of_revoked_tokens_go_on_after_all_were_forgotten(world: World) {
        let mut last = 0;
        for _ in 0..3 {
            let session = world.login_or_register("mina@example.com").await;
            let refresh_token = Some(session.refresh_token);
            world.auth.logout(LogoutRequest { refresh_token, ..LogoutRequest::default() }).await.unwrap();
            let revoked = world.auth.list_revoked_tokens(last).await.unwrap();
            assert_eq!(revoked.len(), 1, "a gateway that waits for greater numbers sees it");
            last = revoked[0].seq;
            world.clock.advance(30 * MINUTE);
            world.auth.purge_expired(100).await.unwrap();
        }
    }

    async fn an_unused_account_is_put_aside_and_woken_by_a_login(world: World) {
        let id = world.register("mina@example.com").await.user.id;
        world.clock.advance(365 * DAY);
        assert_eq!(world.auth.mark_dormant(100).await.unwrap(), 0);
        world.clock.advance(MINUTE);
        assert_eq!(world.auth.mark_dormant(100).await.unwrap(), 1);
        assert_eq!(world.auth.get_user(id).await.unwrap().status, AccountStatus::Dormant);
        assert_eq!(world.auth.mark_dormant(100).await.unwrap(), 0);
        world.login("mina@example.com", PASSWORD).await.unwrap();
        assert_eq!(world.auth.get_user(id).await.unwrap().status, AccountStatus::Active);
    }

    async fn who_stays_logged_in_is_not_unused(world: World) {
        let mut session = world.register("mina@example.com").await;
        for _ in 0..61 {
            world.clock.advance(6 * DAY);
            session = world.auth.refresh(&session.refresh_token, ClientInfo::default()).await.unwrap();
        }
        assert_eq!(world.auth.mark_dormant(100).await.unwrap(), 0);
        world.clock.advance(8 * DAY);
        assert_eq!(world.auth.mark_dormant(100).await.unwrap(), 1);
    }

    async fn the_jobs_run_at_the_start_and_stop_when_told(world: World) {
        world.register("mina@example.com").await;
        world.clock.advance(400 * DAY);
        let stop = CancellationToken::new();
        let jobs = tokio::spawn({
            let (auth, stop) = (world.auth.clone(), stop.clone());
            async move { auth.run_jobs(stop).await }
        });
        let dormant = "select count(*) as n from users where status = 'dormant'";
        let tokens = "select count(*) as n from refresh_tokens";
        while world.number(dormant).await == 0 || world.number(tokens).await > 0 {
            tokio::task::yield_now().await;
        }
        stop.cancel();
        jobs.await.unwrap();
    }
}

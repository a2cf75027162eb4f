//! The first administrator, and what administrators may do to each other.

use urr_auth::{
    ChangeRoleError, ClientInfo, Email, InviteError, LoginError, NewAdmin, Password, PersonName,
    Reauthentication, ReauthenticationError, RegisterError, RoleChange, UserId,
};
use urr_service::{Page, UserRole};

use crate::contract;
use crate::fixture::{DAY, PASSWORD, SECOND, World, all, change_role};

fn admin(email: &str) -> NewAdmin {
    let email = Email::parse(email).unwrap();
    let password = Password::parse(PASSWORD, &email).unwrap();
    NewAdmin { email, name: PersonName::parse("관리자").unwrap(), password }
}

async fn redeem(world: &World, token: &str, email: &str) -> Result<UserId, InviteError> {
    let context = world.context();
    let redeemed =
        world.auth.redeem_admin_invite(token, admin(email), ClientInfo::default(), context);
    redeemed.await.map(|session| {
        assert_eq!(session.user.role, UserRole::Admin);
        session.user.id
    })
}

contract! {
    async fn an_operator_makes_an_administrator(world: World) {
        let made = world.auth.create_admin(admin("boss@example.com")).await.unwrap();
        assert_eq!(made.role, UserRole::Admin);
        let session = world.login("boss@example.com", PASSWORD).await.unwrap();
        assert_eq!(session.user.role, UserRole::Admin);
        let again = world.auth.create_admin(admin("BOSS@example.com")).await;
        assert_eq!(again, Err(RegisterError::EmailTaken));
        assert_eq!(world.number("select count(*) as n from refresh_tokens").await, 1, "the login");
    }

    async fn d_12_an_invitation_makes_the_first_administrator_once(world: World) {
        let invite = world.auth.issue_admin_invite().await.unwrap().unwrap();
        assert_eq!(redeem(&world, "guess", "boss@example.com").await, Err(InviteError::Invalid));
        redeem(&world, invite.expose(), "boss@example.com").await.unwrap();
        let again = redeem(&world, invite.expose(), "second@example.com").await;
        assert_eq!(again, Err(InviteError::Invalid));
        assert!(world.auth.issue_admin_invite().await.unwrap().is_none(), "there is one now");
    }

    async fn an_invitation_lasts_a_day_and_a_new_one_replaces_it(world: World) {
        let first = world.auth.issue_admin_invite().await.unwrap().unwrap();
        let second = world.auth.issue_admin_invite().await.unwrap().unwrap();
        let replaced = redeem(&world, first.expose(), "boss@example.com").await;
        assert_eq!(replaced, Err(InviteError::Invalid));
        world.clock.advance(DAY - SECOND);
        world.register("mina@example.com").await;
        let taken = redeem(&world, second.expose(), "mina@example.com").await;
        assert_eq!(taken, Err(InviteError::EmailTaken), "which does not use it up");
        world.clock.advance(SECOND);
        let late = redeem(&world, second.expose(), "boss@example.com").await;
        assert_eq!(late, Err(InviteError::Invalid));
    }

    async fn an_invitation_is_void_once_there_is_an_administrator(world: World) {
        let invite = world.auth.issue_admin_invite().await.unwrap().unwrap();
        world.auth.create_admin(admin("boss@example.com")).await.unwrap();
        let refused = redeem(&world, invite.expose(), "thief@example.com").await;
        assert_eq!(refused, Err(InviteError::Invalid));
    }

    async fn of_many_who_redeem_an_invitation_at_once_one_succeeds(world: World) {
        let invite = world.auth.issue_admin_invite().await.unwrap().unwrap();
        let attempts = (0..8).map(|n| {
            let (auth, context, invite) = (world.auth.clone(), world.context(), invite.clone());
            let admin = admin(&format!("boss{n}@example.com"));
            async move {
                let client = ClientInfo::default();
                auth.redeem_admin_invite(invite.expose(), admin, client, context).await.is_ok()
            }
        });
        let succeeded = all(attempts).await.into_iter().filter(|succeeded| *succeeded).count();
        assert_eq!(succeeded, 1);
        assert_eq!(world.number("select count(*) as n from users").await, 1);
    }

    async fn only_the_hash_of_an_invitation_is_stored(world: World) {
        let invite = world.auth.issue_admin_invite().await.unwrap().unwrap();
        let stored = world.rows("select token_hash from admin_invites", |row| {
            row.get::<Vec<u8>>("token_hash")
        }).await;
        assert_eq!(stored[0].len(), 32);
        assert_ne!(stored[0], invite.expose().as_bytes());
    }

    async fn the_last_administrator_can_neither_be_demoted_nor_leave(world: World) {
        let boss = world.auth.create_admin(admin("boss@example.com")).await.unwrap().id;
        let demoted = change_role(&world.auth, boss, UserRole::User).await;
        assert_eq!(demoted, Err(ChangeRoleError::LastAdmin));
        let password = Reauthentication::by_password(PASSWORD);
        let left = world.auth.delete_user(boss, password.clone(), world.context()).await;
        assert_eq!(left, Err(ReauthenticationError::LastAdmin));
        let mina = world.register("mina@example.com").await.user.id;
        change_role(&world.auth, mina, UserRole::Admin).await.unwrap();
        world.auth.delete_user(boss, password, world.context()).await.unwrap();
        // A deleted administrator does not count.
        let demoted = change_role(&world.auth, mina, UserRole::User).await;
        assert_eq!(demoted, Err(ChangeRoleError::LastAdmin));
    }

    async fn two_administrators_who_demote_each_other_do_not_both_succeed(world: World) {
        let a = world.auth.create_admin(admin("a@example.com")).await.unwrap().id;
        let b = world.auth.create_admin(admin("b@example.com")).await.unwrap().id;
        for _ in 0..20 {
            let demotions = [a, b].map(|id| {
                let auth = world.auth.clone();
                async move { change_role(&auth, id, UserRole::User).await.is_ok() }
            });
            let succeeded = all(demotions).await.into_iter().filter(|ok| *ok).count();
            assert_eq!(succeeded, 1);
            for id in [a, b] {
                change_role(&world.auth, id, UserRole::Admin).await.unwrap();
            }
        }
    }

    /// The row is written with the change: what was rejected has none.
    async fn what_administrators_and_operators_do_is_in_the_log(world: World) {
        let boss = world.auth.create_admin(admin("boss@example.com")).await.unwrap().id;
        assert!(change_role(&world.auth, boss, UserRole::User).await.is_err());
        let mina = world.register("mina@example.com").await.user.id;
        let change = RoleChange { user_id: mina, role: UserRole::Admin, admin_id: Some(boss) };
        world.auth.change_role(change).await.unwrap();
        // The same role again changes nothing.
        world.auth.change_role(change).await.unwrap();
        let sql = "select action, admin_id, resource_id, summary from admin_actions order by id";
        let rows = world.rows(sql, |row| {
            let admin_id: Option<urr_kernel::Uuid> = row.get("admin_id")?;
            let resource_id: String = row.get("resource_id")?;
            Ok((row.get::<String>("action")?, admin_id, resource_id, row.get::<String>("summary")?))
        }).await;
        assert_eq!(rows, [
            ("ADMIN_CREATED".to_owned(), None, boss.to_string(), String::new()),
            ("ROLE_CHANGED".to_owned(), Some(boss.0), mina.to_string(), "admin".to_owned()),
        ]);
    }

    async fn accounts_are_listed_in_pages_and_found_by_their_whole_address(world: World) {
        for n in 0..5 {
            world.register(&format!("fan{n}@example.com")).await;
            world.clock.advance(SECOND);
        }
        let (users, total) = world.auth.list_users(Page::new(2, 2)).await.unwrap();
        let emails: Vec<_> = users.iter().map(|user| user.person.email.as_str()).collect();
        assert_eq!((emails, total), (vec!["fan2@example.com", "fan1@example.com"], 5));
        let found = world.auth.find_user_by_email(&Email::parse("FAN3@example.com").unwrap()).await;
        assert_eq!(found.unwrap().unwrap().person.email.as_str(), "fan3@example.com");
        let part = world.auth.find_user_by_email(&Email::parse("fan@example.com").unwrap()).await;
        assert_eq!(part.unwrap(), None);
        let nobody = UserId(world.ids.next_id());
        let changed = change_role(&world.auth, nobody, UserRole::Admin).await;
        assert_eq!(changed, Err(ChangeRoleError::NotFound));
        let wrong = world.login("fan1@example.com", "not the password").await;
        assert_eq!(wrong, Err(LoginError::InvalidCredentials));
    }
}

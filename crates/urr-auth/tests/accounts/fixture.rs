//! Accounts on a database of their own, on either engine, with a clock that stands still.

use std::future::Future;
use std::time::Duration;

use urr_auth::{
    AuthParts, AuthService, AuthSettings, BotCheckMethod, BotCheckSettings, ChangeRoleError,
    ClientInfo, Credentials, Email, LoginError, Password, PasswordChange, PasswordCost, PersonName,
    PersonalDetails, PhoneNumber, Reauthentication, RegisterError, Registration, RoleChange,
    SCHEMA, Session, TermsAnswer, TermsAnswers, TermsKind, UserAccount, UserId,
};
use urr_kernel::{CallContext, Clock, IdSource, Secret};
use urr_service::token::TokenKey;
use urr_service::{DataKeys, UserRole};
use urr_storage::{Db, Row, StorageError};
use urr_test::engines::{self, Database, Engine};

use crate::tickets::FakeTickets;

pub const PASSWORD: &str = "달무리 뜨는 밤에";
pub const SECOND: Duration = Duration::from_secs(1);
pub const MINUTE: Duration = Duration::from_secs(60);
pub const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A migrated database with its accounts.
pub struct World {
    pub database: Database,
    pub db: Db,
    pub clock: Clock,
    pub ids: IdSource,
    pub tickets: FakeTickets,
    pub auth: AuthService,
}

impl World {
    fn new(engine: Engine) -> Option<World> {
        let clock = Clock::manual("2026-11-15T00:30:00Z".parse().unwrap());
        let database = Database::open(engine, &SCHEMA, clock.now())?;
        let (db, ids) = (database.db.clone(), IdSource::seeded(clock.clone(), 20_261_115));
        let tickets = FakeTickets::default();
        let auth = make_auth(&db, &clock, &ids, &tickets, data_keys(), cheap_settings());
        Some(World { database, db, clock, ids, tickets, auth })
    }

    /// The same accounts, seen by a process that is set up otherwise.
    pub fn auth_with(&self, data_keys: DataKeys, settings: AuthSettings) -> AuthService {
        make_auth(&self.db, &self.clock, &self.ids, &self.tickets, data_keys, settings)
    }

    pub fn context(&self) -> CallContext {
        CallContext::root(self.ids.next_id())
    }

    pub async fn register(&self, email: &str) -> Session {
        self.try_register(&self.auth, email).await.unwrap()
    }

    pub async fn try_register(
        &self,
        auth: &AuthService,
        email: &str,
    ) -> Result<Session, RegisterError> {
        auth.register(registration(email), ClientInfo::default(), self.context()).await
    }

    pub async fn login(&self, email: &str, password: &str) -> Result<Session, LoginError> {
        login(&self.auth, email, password).await
    }

    pub async fn login_or_register(&self, email: &str) -> Session {
        match self.login(email, PASSWORD).await {
            Ok(session) => session,
            Err(_) => self.register(email).await,
        }
    }

    /// The secret of the last link that was issued to a user, as its mail has it.
    pub async fn last_link(&self, kind: &'static str) -> Option<Secret> {
        let found = self.db.read(move |tx| {
            let sql = "select id from account_links where kind = $1 \
                       order by created_at desc, id desc limit 1";
            tx.query_opt(sql, urr_storage::params![kind], |row| row.get("id"))
        });
        let id: Option<urr_kernel::Uuid> =
            found.await.unwrap_or_else(|error: StorageError| panic!("{error}"));
        let link = self.auth.get_link(id?).await.unwrap()?;
        Some(Secret::new(link.token))
    }

    /// The owner of the address uses the link in the mail.
    pub async fn verify_email(&self) {
        let link = self.last_link("verify_email").await.unwrap();
        self.auth.verify_email(&link).await.unwrap();
    }

    /// Whether an access token is in force.
    pub async fn accepts(&self, access_token: &str) -> bool {
        self.auth.verify_token(access_token).await.is_ok()
    }

    /// The rows of a query, each turned into text by the caller.
    pub async fn rows<T: Send + 'static>(
        &self,
        sql: &'static str,
        read: fn(&Row<'_>) -> Result<T, StorageError>,
    ) -> Vec<T> {
        let rows = self.db.read(move |tx| tx.query(sql, &[], read)).await;
        rows.unwrap_or_else(|error: StorageError| panic!("{error}"))
    }

    /// The one number that a query gives as `n`.
    pub async fn number(&self, sql: &'static str) -> i64 {
        self.rows(sql, |row| row.get("n")).await[0]
    }
}

fn make_auth(
    db: &Db,
    clock: &Clock,
    ids: &IdSource,
    tickets: &FakeTickets,
    data_keys: DataKeys,
    settings: AuthSettings,
) -> AuthService {
    let peers = Some(tickets.peers(clock, ids));
    let (db, clock, ids, token_key) = (db.clone(), clock.clone(), ids.clone(), token_key());
    AuthService::new(AuthParts { db, clock, ids, token_key, data_keys, peers, settings })
}

pub fn token_key() -> TokenKey {
    TokenKey::new(&[7; 32])
}

pub fn data_keys() -> DataKeys {
    DataKeys::single(Secret::new("the first data key of these tests"))
}

/// Hashes that cost nothing, and no work to do: most tests are not about guessing.
pub fn cheap_settings() -> AuthSettings {
    let bot_check = BotCheckSettings { method: BotCheckMethod::Off, ..BotCheckSettings::default() };
    AuthSettings { password_cost: CHEAP, bot_check, ..AuthSettings::default() }
}

pub const CHEAP: PasswordCost = PasswordCost { memory_kib: 8, passes: 1, lanes: 1 };

pub fn client(address: &str, user_agent: &str) -> ClientInfo {
    let (address, user_agent) = (address.to_owned(), user_agent.to_owned());
    ClientInfo { address, user_agent, language: None }
}

pub fn registration(email: &str) -> Registration {
    let email = Email::parse(email).unwrap();
    let agreed = |kind| TermsAnswer { kind, version: "2026-11".to_owned(), agreed: true };
    Registration {
        password: Password::parse(PASSWORD, &email).unwrap(),
        person: PersonalDetails {
            email,
            name: PersonName::parse("김민아").unwrap(),
            phone: Some(PhoneNumber::parse("010-1234-5678").unwrap()),
        },
        terms: TermsAnswers::for_new_account(
            vec![agreed(TermsKind::Service), agreed(TermsKind::Privacy)],
            &AuthSettings::default().terms,
        )
        .unwrap(),
        language: None,
    }
}

pub fn password_change(old: &str, new: &str) -> PasswordChange {
    PasswordChange { reauthentication: Reauthentication::by_password(old), new: new.to_owned() }
}

pub async fn login(auth: &AuthService, email: &str, password: &str) -> Result<Session, LoginError> {
    let (email, password) = (Email::parse(email).unwrap(), Secret::new(password));
    auth.login(Credentials { email, password }, ClientInfo::default()).await
}

/// Runs one case of the contract on its own database.
pub fn run<F: Future<Output = ()>>(engine: Engine, case: impl FnOnce(World) -> F) {
    if let Some(world) = World::new(engine) {
        engines::block_on(case(world));
    }
}

/// Declares cases that run on both engines: `contract! { async fn name(world: World) { … } }`.
#[macro_export]
macro_rules! contract {
    ($($cases:tt)*) => {
        urr_test::on_both! {
            run = $crate::fixture::run,
            sqlite = urr_test::engines::Engine::Sqlite,
            postgres = urr_test::engines::Engine::Postgres;
            $($cases)*
        }
    };
}

/// Runs futures at the same time, on several threads, and gives their results in order.
pub async fn all<T, F>(futures: impl IntoIterator<Item = F>) -> Vec<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let tasks: Vec<_> = futures.into_iter().map(tokio::spawn).collect();
    let mut results = Vec::with_capacity(tasks.len());
    for task in tasks {
        results.push(task.await.unwrap());
    }
    results
}

/// A change of role by an operator.
pub async fn change_role(
    auth: &AuthService,
    user_id: UserId,
    role: UserRole,
) -> Result<UserAccount, ChangeRoleError> {
    auth.change_role(RoleChange { user_id, role, admin_id: None }).await
}

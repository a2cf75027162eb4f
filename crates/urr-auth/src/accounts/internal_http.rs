//! The internal calls for users and revoked tokens.

use urr_contracts::internal::auth::{
    AccountLanguage, AccountLinkAnswer, AccountSummary, FindUsers, FindUsersAnswer, GetAccountLink,
    GetPerson, GetUser, GetUserAnswer, ListRevokedTokens, ListUsers, ListUsersAnswer, PersonAnswer,
    RevokedTokenPage, USERS_FOUND_MAX, USERS_PER_CALL_MAX,
};
use urr_kernel::{CallContext, Language};
use urr_service::{ApiError, InternalCalls, Page};

use crate::administrators::accounts::AccountSearch;
use crate::{AuthService, UserAccount, UserId};

pub fn calls(auth: AuthService) -> InternalCalls<AuthService> {
    InternalCalls::new(auth)
        .serve(get_user)
        .serve(list_users)
        .serve(find_users)
        .serve(get_person)
        .serve(list_revoked_tokens)
        .serve(get_account_link)
}

impl From<UserAccount> for AccountSummary {
    fn from(user: UserAccount) -> AccountSummary {
        AccountSummary {
            id: user.id.0,
            email: user.person.email.as_str().to_owned(),
            name: user.person.name.as_str().to_owned(),
            role: user.role.into(),
            language: match user.language {
                Language::Korean => AccountLanguage::Korean,
                Language::English => AccountLanguage::English,
            },
            email_verified: user.email_verified,
        }
    }
}

async fn get_user(
    auth: AuthService,
    call: GetUser,
    _: CallContext,
) -> Result<GetUserAnswer, ApiError> {
    Ok(GetUserAnswer { user: auth.get_user(UserId(call.id)).await?.into() })
}

/// Leaves out ids without an account.
async fn list_users(
    auth: AuthService,
    call: ListUsers,
    _: CallContext,
) -> Result<ListUsersAnswer, ApiError> {
    if !(1..=USERS_PER_CALL_MAX).contains(&call.user_ids.len()) {
        let sentence = format!("A request has 1 to {USERS_PER_CALL_MAX} ids.");
        return Err(ApiError::bad_request("INVALID_USER_IDS", sentence));
    }
    let users = auth.get_users(call.user_ids.into_iter().map(UserId).collect()).await?;
    Ok(ListUsersAnswer { users: users.into_iter().map(AccountSummary::from).collect() })
}

/// Finds nobody for a text that no account can have. Without a text nothing is asked for: this is no
/// list of all accounts.
async fn find_users(
    auth: AuthService,
    call: FindUsers,
    _: CallContext,
) -> Result<FindUsersAnswer, ApiError> {
    let nobody = FindUsersAnswer { user_ids: Vec::new(), more: false };
    let search = match AccountSearch::parse(&call.text) {
        Ok(AccountSearch::All) | Err(_) => return Ok(nobody),
        Ok(search) => search,
    };
    let limit = i64::try_from(USERS_FOUND_MAX).expect("it is a small number");
    let (found, total) = auth.search_accounts(search, Page::new(1, limit)).await?;
    let user_ids: Vec<_> = found.iter().map(|user| user.id.0).collect();
    Ok(FindUsersAnswer { more: total > u64::try_from(USERS_FOUND_MAX).unwrap_or(total), user_ids })
}

async fn get_person(
    auth: AuthService,
    call: GetPerson,
    _: CallContext,
) -> Result<PersonAnswer, ApiError> {
    Ok(PersonAnswer { person_hashes: auth.person_hashes(UserId(call.id)).await? })
}

/// The secret of a link, for the mail that carries it.
async fn get_account_link(
    auth: AuthService,
    call: GetAccountLink,
    _: CallContext,
) -> Result<AccountLinkAnswer, ApiError> {
    let link = auth.get_link(call.id).await?;
    link.ok_or_else(|| ApiError::not_found("LINK_NOT_FOUND", "The link is not in force."))
}

async fn list_revoked_tokens(
    auth: AuthService,
    call: ListRevokedTokens,
    _: CallContext,
) -> Result<RevokedTokenPage, ApiError> {
    let tokens = auth.list_revoked_tokens(call.after).await?;
    let next = tokens.last().map_or(call.after, |token| token.seq);
    Ok(RevokedTokenPage { tokens, next })
}

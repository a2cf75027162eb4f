//! The SQL of answers to the terms.

use urr_kernel::Timestamp;
use urr_storage::{DbResult, Tx, from_row, params};

use super::{AgreedTerms, TermsAnswer, TermsAnswers};
use crate::accounts::account::UserId;

pub fn terms_insert(
    tx: &mut Tx<'_>,
    user_id: UserId,
    terms: &TermsAnswers,
    now: Timestamp,
) -> DbResult<()> {
    terms.answers().iter().try_for_each(|answer| terms_answer_insert(tx, user_id, answer, now))
}

/// Of two answers at the same time the second counts.
pub fn terms_answer_insert(
    tx: &mut Tx<'_>,
    user_id: UserId,
    answer: &TermsAnswer,
    now: Timestamp,
) -> DbResult<()> {
    tx.execute(
        "insert into terms_agreements (user_id, kind, version, agreed, agreed_at) \
         values ($1, $2, $3, $4, $5) on conflict (user_id, kind, agreed_at) \
         do update set version = excluded.version, agreed = excluded.agreed",
        params![user_id, answer.kind, answer.version, answer.agreed, now],
    )
    .map(drop)
}

/// The last answer of a user to each of the terms.
pub fn terms_list_latest(tx: &mut Tx<'_>, user_id: UserId) -> DbResult<Vec<TermsAnswer>> {
    let sql = "select kind, version, agreed from terms_agreements as answer where user_id = $1 \
               and not exists (select 1 from terms_agreements as later \
               where later.user_id = answer.user_id and later.kind = answer.kind \
               and later.agreed_at > answer.agreed_at)";
    tx.query(sql, params![user_id], |row| {
        Ok(from_row!(row => TermsAnswer { kind, version, agreed }))
    })
}

/// Every answer of a user, the newest first.
pub fn terms_list_all(tx: &mut Tx<'_>, user_id: UserId) -> DbResult<Vec<AgreedTerms>> {
    const ANSWERS_MAX: u32 = 1_000;
    let sql = "select kind, version, agreed, agreed_at from terms_agreements where user_id = $1 \
               order by agreed_at desc, kind limit $2";
    tx.query(sql, params![user_id, ANSWERS_MAX], |row| {
        Ok(from_row!(row => AgreedTerms { kind, version, agreed, agreed_at }))
    })
}

//! The SQL of the terms and of answers to them.

use urr_kernel::{Language, Timestamp};
use urr_storage::{DbResult, Tx, from_row, params};

use super::{AgreedTerms, TermsAnswer, TermsAnswers, TermsDocument, TermsKind, TermsText};
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

/// Stores a version with its text, unless it is stored already.
pub fn document_insert(tx: &mut Tx<'_>, document: &TermsDocument, now: Timestamp) -> DbResult<()> {
    let TermsDocument { kind, version, text } = document;
    let [korean, english] = languages(text);
    tx.execute(
        "insert into terms_documents \
         (kind, version, text_ko, text_en, is_example, in_force_from) \
         values ($1, $2, $3, $4, $5, $6) on conflict (kind, version) do nothing",
        params![*kind, version, korean, english, text.is_example(), now],
    )
    .map(drop)
}

pub fn document_replace_example(tx: &mut Tx<'_>, document: &TermsDocument) -> DbResult<()> {
    let TermsDocument { kind, version, text } = document;
    let [korean, english] = languages(text);
    tx.execute(
        "update terms_documents set text_ko = $3, text_en = $4 \
         where kind = $1 and version = $2 and is_example",
        params![*kind, version, korean, english],
    )
    .map(drop)
}

pub fn document_find(
    tx: &mut Tx<'_>,
    kind: TermsKind,
    version: &str,
) -> DbResult<Option<TermsDocument>> {
    let sql = "select kind, version, text_ko, text_en, is_example from terms_documents \
               where kind = $1 and version = $2";
    tx.query_opt(sql, params![kind, version], |row| {
        let text =
            TermsText::stored(row.get("text_ko")?, row.get("text_en")?, row.get("is_example")?);
        Ok(from_row!(row => TermsDocument { kind, version; text: text }))
    })
}

fn languages(text: &TermsText) -> [&str; 2] {
    [Language::Korean, Language::English].map(|language| text.in_language(language))
}

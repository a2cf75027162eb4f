//! A user's mails, for the copy of their data.

use serde_json::{Value, json};
use urr_contracts::internal::mail::{GetMailRecords, MailRecordsAnswer};
use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_service::own_records::bounded_records;
use urr_service::{ApiError, InternalCalls};
use urr_storage::{StorageError, Tx, params};

use super::reservations::{list_reservation_mails, resend_ticket_mail};
use crate::MailService;
use crate::http::problems::list_mail_problems;

/// How many mails a copy has at most, the newest.
const RECORDS_MAX: u32 = 2_000;

pub fn calls(service: MailService) -> InternalCalls<MailService> {
    InternalCalls::new(service)
        .serve(get_mail_records)
        .serve(list_reservation_mails)
        .serve(resend_ticket_mail)
        .serve(list_mail_problems)
}

async fn get_mail_records(
    service: MailService,
    GetMailRecords { user_id }: GetMailRecords,
    _: CallContext,
) -> Result<MailRecordsAnswer, ApiError> {
    let read = move |tx: &mut Tx<'_>| {
        let sql = "select id, kind, subject_id, template_data, language, status, created_at, \
                   ended_at from mails where user_id = $1 order by created_at desc, id desc limit $2";
        let mails = tx.query(sql, params![user_id, RECORDS_MAX + 1], |row| {
            Ok(json!({
                "id": row.get::<Uuid>("id")?,
                "kind": row.get::<String>("kind")?,
                "subjectId": row.get::<Uuid>("subject_id")?,
                "content": row.get_json::<Value>("template_data")?,
                "language": row.get::<Option<String>>("language")?,
                "status": row.get::<String>("status")?,
                "createdAt": row.get::<Timestamp>("created_at")?,
                "endedAt": row.get::<Option<Timestamp>>("ended_at")?,
            }))
        })?;
        Ok::<_, StorageError>(bounded_records([("mails", mails)], RECORDS_MAX))
    };
    Ok(MailRecordsAnswer { records: service.parts.db.read(read).await? })
}

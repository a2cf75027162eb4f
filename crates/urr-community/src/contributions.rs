//! What a user wrote, for the copy of all of their data.

use serde_json::{Value, json};
use urr_contracts::internal::community::{ContributionsAnswer, GetContributions};
use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_service::ApiError;
use urr_service::own_records::bounded_records;
use urr_storage::{DbResult, StorageError, Tx, params};

use crate::CommunityService;

/// The newest of each kind, at most.
const RECORDS_MAX: u32 = 2_000;

pub async fn get_contributions(
    community: CommunityService,
    call: GetContributions,
    _: CallContext,
) -> Result<ContributionsAnswer, ApiError> {
    let user_id = call.user_id;
    let records = community.0.db.read(move |tx| {
        let tables = [
            ("posts", posts(tx, user_id)?),
            ("comments", comments(tx, user_id)?),
            ("reports", reports(tx, user_id)?),
        ];
        Ok::<_, StorageError>(bounded_records(tables, RECORDS_MAX))
    });
    Ok(ContributionsAnswer { records: records.await? })
}

fn posts(tx: &mut Tx<'_>, user_id: Uuid) -> DbResult<Vec<Value>> {
    tx.query(
        "select id, kind, artist_id, title, content, images, status, created_at from posts \
         where author_id = $1 and status <> 'deleted' order by created_at desc limit $2",
        params![user_id, RECORDS_MAX + 1],
        |row| {
            Ok(json!({
                "id": row.get::<Uuid>("id")?,
                "kind": row.get::<String>("kind")?,
                "artistId": row.get::<Option<Uuid>>("artist_id")?,
                "title": row.get::<String>("title")?,
                "content": row.get::<String>("content")?,
                "images": row.get_json::<serde_json::Value>("images")?,
                "status": row.get::<String>("status")?,
                "createdAt": row.get::<Timestamp>("created_at")?,
            }))
        },
    )
}

fn comments(tx: &mut Tx<'_>, user_id: Uuid) -> DbResult<Vec<Value>> {
    tx.query(
        "select id, post_id, content, status, created_at from comments \
         where author_id = $1 and status <> 'deleted' order by created_at desc limit $2",
        params![user_id, RECORDS_MAX + 1],
        |row| {
            Ok(json!({
                "id": row.get::<Uuid>("id")?,
                "postId": row.get::<Uuid>("post_id")?,
                "content": row.get::<String>("content")?,
                "status": row.get::<String>("status")?,
                "createdAt": row.get::<Timestamp>("created_at")?,
            }))
        },
    )
}

fn reports(tx: &mut Tx<'_>, user_id: Uuid) -> DbResult<Vec<Value>> {
    tx.query(
        "select subject_id, reason, note, created_at from reports where reporter_id = $1 \
         order by created_at desc limit $2",
        params![user_id, RECORDS_MAX + 1],
        |row| {
            Ok(json!({
                "subjectId": row.get::<Uuid>("subject_id")?,
                "reason": row.get::<String>("reason")?,
                "note": row.get::<String>("note")?,
                "createdAt": row.get::<Timestamp>("created_at")?,
            }))
        },
    )
}

//! Mails that could not be sent.

use std::time::Duration;

use urr_contracts::internal::problems::{ListMailProblems, Problem, ProblemCode, ProblemList};
use urr_kernel::CallContext;
use urr_service::ApiError;
use urr_storage::{StorageError, Tx, params};

use crate::MailService;

/// Failures are shown for so long.
const SHOWN: Duration = Duration::from_hours(24);

/// Mails are for operators, not for organisers.
pub async fn list_mail_problems(
    service: MailService,
    ListMailProblems { organiser_id }: ListMailProblems,
    _: CallContext,
) -> Result<ProblemList, ApiError> {
    if organiser_id.is_some() {
        return Ok(ProblemList::default());
    }
    let since = service.parts.clock.now() - SHOWN;
    let read = move |tx: &mut Tx<'_>| {
        let sql = "select count(*) as count, min(created_at) as since from mails \
                   where status = 'failed' and created_at >= $1";
        tx.query_one(sql, params![since], |row| {
            let count = row.get::<i64>("count")?.unsigned_abs();
            Ok::<_, StorageError>(Problem {
                since: row.get("since")?,
                ..Problem::new(ProblemCode::MailsFailed, count)
            })
        })
    };
    let problem: Problem = service.parts.db.read(read).await?;
    let problems = Some(problem).filter(|problem| problem.count > 0).into_iter().collect();
    Ok(ProblemList { problems })
}

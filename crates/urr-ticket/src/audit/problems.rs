//! What is wrong with seats and reservations at the moment: the result of the last audit.

use urr_contracts::internal::problems::{ListTicketProblems, Problem, ProblemCode, ProblemList};
use urr_kernel::CallContext;
use urr_service::ApiError;

use crate::TicketService;

/// Differences are for operators, not for organisers.
pub async fn list_ticket_problems(
    ticket: TicketService,
    ListTicketProblems { organiser_id }: ListTicketProblems,
    _: CallContext,
) -> Result<ProblemList, ApiError> {
    let count = ticket.metrics.audit_differences();
    let is_shown = organiser_id.is_none() && count > 0;
    let problem = is_shown.then(|| Problem::new(ProblemCode::SeatsDiffer, count));
    Ok(ProblemList { problems: problem.into_iter().collect() })
}

//! For `urr audit`: our payments beside the books of the sandbox, and the tables as lines that can be
//! compared with those of other services.

use urr_kernel::Uuid;
use urr_storage::{DbResult, Row, RowDifference, Tx, params};

use crate::PaymentService;

const ROWS_AT_ONCE: u32 = 1_000;
/// More differences than this are not listed.
const DIFFERENCES_MAX: usize = 1_000;

/// What another service knows too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedPayments {
    /// Payments that were announced.
    Charges,
    /// Refunds of announced payments that the provider has done.
    Refunds,
    /// Payments that activated memberships.
    Memberships,
    /// Payments of memberships that stand.
    Terms,
}

/// What the comparison with the sandbox found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxAudit {
    pub payments: u64,
    /// At most 1,000.
    pub differences: Vec<RowDifference>,
}

impl PaymentService {
    /// Compares every payment with the books of the sandbox, in both directions.
    pub async fn audit_sandbox(&self) -> DbResult<SandboxAudit> {
        let mut audit = SandboxAudit::default();
        let mut after = Uuid::nil();
        loop {
            let page = self.read(move |tx| payment_page(tx, after)).await?;
            let Some((last, _)) = page.last() else { break };
            after = *last;
            audit.payments += u64::try_from(page.len()).expect("a page is small");
            audit.differences.extend(page.into_iter().filter_map(|(_, found)| found));
            audit.differences.truncate(DIFFERENCES_MAX);
        }
        let mut after = String::new();
        loop {
            let from = after.clone();
            let page = self.read(move |tx| sandbox_page(tx, &from)).await?;
            let Some((last, _)) = page.last() else { break };
            after.clone_from(last);
            audit.differences.extend(page.into_iter().filter_map(|(_, found)| found));
            audit.differences.truncate(DIFFERENCES_MAX);
        }
        Ok(audit)
    }

    /// The next rows, each as a line, in the order of their ids.
    pub async fn audit_lines(
        &self,
        rows: SharedPayments,
        after: Option<Uuid>,
    ) -> DbResult<Vec<(Uuid, String)>> {
        let after = after.unwrap_or(Uuid::nil());
        self.read(move |tx| lines_list(tx, rows, after)).await
    }

    /// How many payments have a step left.
    pub async fn count_under_way(&self) -> DbResult<u64> {
        let sql = "select count(*) as number from payments where step is not null";
        self.read(move |tx| tx.query_one(sql, &[], |row| row.get("number"))).await
    }
}

fn lines_list(tx: &mut Tx<'_>, rows: SharedPayments, after: Uuid) -> DbResult<Vec<(Uuid, String)>> {
    let sql = match rows {
        SharedPayments::Charges => {
            "select id, amount from payments where id > $1 and confirmed_event_id is not null \
             order by id limit $2"
        }
        SharedPayments::Refunds => {
            "select r.id, r.amount from refunds as r join payments as p on p.id = r.payment_id \
             where r.id > $1 and r.status = 'done' and p.confirmed_event_id is not null \
             order by r.id limit $2"
        }
        SharedPayments::Memberships => {
            "select id, 0::bigint as amount from payments where id > $1 \
             and payable_kind = 'membership' and confirmed_event_id is not null \
             order by id limit $2"
        }
        SharedPayments::Terms => {
            "select id, payable_id, fencing_token, amount from payments where id > $1 \
             and payable_kind = 'membership' and status = 'confirmed' order by id limit $2"
        }
    };
    let line = |row: &Row<'_>| {
        let amount = row.get::<i64>("amount")?;
        let line = match rows {
            SharedPayments::Terms => {
                let term = row.get::<Option<i64>>("fencing_token")?.unwrap_or(0);
                let payable_id = row.get::<Uuid>("payable_id")?;
                format!("payable_id={payable_id} term={term} amount={amount}")
            }
            _ => format!("amount={amount}"),
        };
        Ok((row.get("id")?, line))
    };
    tx.query(sql, params![after, ROWS_AT_ONCE], line)
}

/// The next payments with what the sandbox says otherwise. A payment with a step left is under way.
fn payment_page(tx: &mut Tx<'_>, after: Uuid) -> DbResult<Vec<(Uuid, Option<RowDifference>)>> {
    let sql = "select id, order_id, status, step, charged_amount, refunded_amount, \
               (select coalesce(sum(s.charged), 0)::bigint from sandbox_payments as s \
                where s.order_id = payments.order_id) as charged, \
               (select coalesce(sum(s.refunded), 0)::bigint from sandbox_payments as s \
                where s.order_id = payments.order_id) as refunded \
               from payments where id > $1 and provider = 'sandbox' order by id limit $2";
    tx.query(sql, params![after, ROWS_AT_ONCE], |row| {
        let (id, order_id) = (row.get::<Uuid>("id")?, row.get::<String>("order_id")?);
        let ours = [row.get::<i64>("charged_amount")?, row.get("refunded_amount")?];
        let theirs = [row.get::<i64>("charged")?, row.get("refunded")?];
        let (status, step) = (row.get::<String>("status")?, row.get::<Option<String>>("step")?);
        // What the sandbox charged and returned without us is nobody's loss.
        let is_returned = ours == [0, 0] && theirs[0] == theirs[1];
        let differs = step.is_none() && ours != theirs && !is_returned;
        let difference = || RowDifference {
            kind: "sandbox",
            sentence: format!(
                "payment {id}: we have {} won charged and {} refunded, the sandbox {} and {}",
                ours[0], ours[1], theirs[0], theirs[1]
            ),
            rows: vec![
                format!(
                    "payments id={id} order_id={order_id} status={status} charged_amount={} \
                     refunded_amount={}",
                    ours[0], ours[1]
                ),
                format!(
                    "sandbox_payments order_id={order_id} charged={} refunded={}",
                    theirs[0], theirs[1]
                ),
            ],
        };
        Ok((id, differs.then(difference)))
    })
}

/// The next payments of the sandbox that we never created, or whose movements are not their sums.
fn sandbox_page(tx: &mut Tx<'_>, after: &str) -> DbResult<Vec<(String, Option<RowDifference>)>> {
    let sql = "select s.payment_key, s.order_id, s.charged, s.refunded, \
               (select count(*) from payments as p where p.order_id = s.order_id) as ours, \
               (select coalesce(sum(m.amount), 0)::bigint from sandbox_movements as m \
                where m.payment_key = s.payment_key) as moved \
               from sandbox_payments as s where s.payment_key > $1 \
               order by s.payment_key limit $2";
    tx.query(sql, params![after, ROWS_AT_ONCE], |row| {
        let (key, order_id) = (row.get::<String>("payment_key")?, row.get::<String>("order_id")?);
        let (charged, refunded) = (row.get::<i64>("charged")?, row.get::<i64>("refunded")?);
        let (ours, moved) = (row.get::<i64>("ours")?, row.get::<i64>("moved")?);
        // What was charged and given back is nobody's loss: after a restore, for orders that are lost.
        let sentence = if charged > refunded && ours == 0 {
            Some(format!("order {order_id}: the sandbox has charged it, and we never created it"))
        } else if moved != charged - refunded {
            Some(format!("order {order_id}: the movements at the sandbox add up to {moved} won"))
        } else {
            None
        };
        let row = format!(
            "sandbox_payments payment_key={key} order_id={order_id} charged={charged} \
             refunded={refunded}"
        );
        let rows = vec![row];
        Ok((key, sentence.map(|sentence| RowDifference { kind: "sandbox", sentence, rows })))
    })
}

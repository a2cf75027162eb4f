//! What must be true when everything has healed and nothing is under way any more.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use urr_kernel::{DomainEvent, Uuid};

use super::{Moment, SeenReservation, Verdict, require};
use crate::databases::DatabaseName;
use crate::faults::CLOCK_SKEW_MS;

/// 8 and the books, when all is settled.
pub(super) fn check_money(moment: &Moment<'_>) -> Verdict {
    const SETTLED: &str = "8: every charge ends in a ticket or a refund";
    let (payments, provider) = (moment.payments(), moment.provider());
    let reservations: HashMap<Uuid, SeenReservation> =
        moment.reservations().into_iter().map(|row| (row.id, row)).collect();
    for order in provider.keys() {
        let is_ours = payments.iter().any(|payment| payment.order_id == *order);
        require(is_ours, SETTLED, order)?;
    }
    for payment in &payments {
        require(payment.step.is_none(), "8: no payment is left half-way", payment)?;
        let (charged, refunded) = provider.get(&payment.order_id).copied().unwrap_or_default();
        let sums = (payment.charged_amount, payment.refunded_amount);
        require((charged, refunded) == sums, "8: we have what the provider has", (sums, payment))?;
        let net = charged - refunded;
        if let Some(row) = reservations.values().find(|row| row.payment_id == Some(payment.id)) {
            check_reservation_money(row, net)?;
        }
        if payment.payable_kind == "reservation" {
            let row = &reservations[&payment.payable_id];
            // A reservation that was sold on is paid by its new owner.
            let is_sold_on = row.payment_id.is_some_and(|by| {
                payments.iter().any(|other| other.id == by && other.payable_kind == "transfer")
            });
            let has_no_ticket = row.payment_id != Some(payment.id) && !is_sold_on;
            require(!(has_no_ticket && net != 0), SETTLED, (payment, row))?;
        }
    }
    for row in reservations.values() {
        require(row.status != "pending", "5: no hold remains after its end", row)?;
        require(row.payment_status != "refunding", "8: every refund arrives", row)?;
    }
    Ok(())
}

/// What stays with us of a payment is what the reservation says.
fn check_reservation_money(row: &SeenReservation, net: i64) -> Verdict {
    const RULE: &str = "8: provider, ledger and reservation agree";
    let kept_of_parts = row.cancelled_amount - row.cancelled_refund_amount;
    let expected = match row.status.as_str() {
        "confirmed" => row.total_amount + kept_of_parts,
        "cancelled" => row.total_amount - row.refund_amount.unwrap_or(0) + kept_of_parts,
        _ => 0,
    };
    require(net == expected, RULE, (net, expected, row))
}

/// 9, 10: what was committed is published, nothing else is, and each has one effect.
pub(super) fn check_events(moment: &Moment<'_>) -> Verdict {
    const PUBLISHED: &str = "9: an event is published if and only if its change was committed";
    let mut committed = BTreeSet::new();
    for name in DatabaseName::PUBLISHING {
        let sql = "select event_id, published_at is null as waits from outbox";
        let rows = moment
            .rows(name, sql, |row| Ok((row.get::<Uuid>("event_id")?, row.get::<bool>("waits")?)));
        for (id, waits) in rows {
            require(!waits, "9: outboxes are empty at the end", id)?;
            committed.insert(id);
        }
    }
    let sql = "select topic, body from bus_message";
    let messages = moment.rows(DatabaseName::Bus, sql, |row| {
        Ok((row.get::<String>("topic")?, row.get::<Vec<u8>>("body")?))
    });
    let mut published = BTreeSet::new();
    for (topic, body) in messages {
        require(!topic.ends_with("-dlq"), "9: nothing becomes a dead letter", &topic)?;
        let event = DomainEvent::from_bytes(&body).expect("we published it");
        published.insert(event.id);
    }
    require(committed == published, PUBLISHED, committed.symmetric_difference(&published))?;
    let sql = "select event_id, times from counted";
    let counted = moment.rows(DatabaseName::Witness, sql, |row| {
        Ok((row.get::<Uuid>("event_id")?, row.get::<i64>("times")?))
    });
    const ONCE: &str = "10: each event has one effect per consumer";
    let twice: Vec<_> = counted.iter().filter(|(_, times)| *times != 1).collect();
    require(twice.is_empty(), ONCE, twice)?;
    let counted: BTreeSet<Uuid> = counted.into_iter().map(|(id, _)| id).collect();
    require(counted == published, ONCE, counted.symmetric_difference(&published))
}

/// 10: the statistics are a recount of the reservations and the charges.
pub(super) fn check_statistics(moment: &Moment<'_>) -> Verdict {
    const RULE: &str = "10: the statistics equal a recount";
    let sql = "select id, case when cancelled_at is not null then 'cancelled' \
               when confirmed_at is not null then 'confirmed' \
               when expired_at is not null then 'expired' else 'pending' end as status, \
               amount from reservations";
    let facts: BTreeMap<Uuid, (String, i64)> = moment
        .rows(DatabaseName::Stats, sql, |row| {
            Ok((row.get("id")?, (row.get("status")?, row.get("amount")?)))
        })
        .into_iter()
        .collect();
    let rows: BTreeMap<Uuid, String> =
        moment.reservations().into_iter().map(|row| (row.id, row.status)).collect();
    for (id, status) in &rows {
        let fact = facts.get(id).map(|(status, _)| status);
        require(fact == Some(status), RULE, (id, status, fact))?;
    }
    require(facts.len() == rows.len(), RULE, facts.len())?;
    let sql = "select coalesce(sum(case kind when 'charge' then amount when 'refund' then -amount \
               else 0 end), 0) as n from transactions";
    let revenue = moment.rows(DatabaseName::Stats, sql, |row| row.get::<i64>("n"))[0];
    // Charges that paid for nothing are not announced.
    let sql = "select coalesce(sum(charged_amount - refunded_amount), 0) as n from payments \
               where confirmed_event_id is not null";
    let paid = moment.rows(DatabaseName::Payment, sql, |row| row.get::<i64>("n"))[0];
    require(revenue == paid, RULE, (revenue, paid))
}

/// 10: a member's purchase gives points once, and a cancelled one takes them back. Somebody may have
/// joined after the purchase by the clock of another process, which was behind.
pub(super) fn check_given_points(moment: &Moment<'_>) -> Verdict {
    let skew_us = u32::from(CLOCK_SKEW_MS) * 1_000;
    let sql = format!(
        "select 'reservation ' || r.status || ' ' || count(p.points) || ' entries of ' \
         || coalesce(sum(p.points), 0) as what from reservations r \
         join sales s on s.event_id = r.event_id \
         join tickets t on t.reservation_id = r.id and t.position = 0 and t.unit = 0 \
         and t.issue = 1 \
         join memberships m on m.artist_id = s.artist_id and m.user_id = r.user_id \
         and m.joined_at + {skew_us} < t.created_at \
         left join membership_points p on p.membership_id = m.id and p.reference_id = r.id \
         where r.status in ('confirmed', 'cancelled') group by r.id, m.id \
         having coalesce(sum(p.points), 0) <> case r.status when 'confirmed' then 100 else 0 end \
         or count(p.points) <> case r.status when 'confirmed' then 1 else 2 end"
    );
    moment.nothing(DatabaseName::Ticket, "10: points are neither lost nor given twice", &sql)
}

/// Whether everything that can still move has come to its end.
pub fn is_settled(moment: &Moment<'_>) -> bool {
    let waiting = |name, sql| moment.count(name, sql) > 0;
    let has_outbox = DatabaseName::PUBLISHING
        .iter()
        .any(|name| waiting(*name, "select count(*) as n from outbox where published_at is null"));
    !has_outbox
        && !waiting(
            DatabaseName::Payment,
            "select count(*) as n from payments where step is not null",
        )
        && !waiting(
            DatabaseName::Ticket,
            "select count(*) as n from reservations \
             where status = 'pending' or payment_status = 'refunding'",
        )
        && !waiting(
            DatabaseName::Bus,
            "select count(*) as n from bus_group_offset g join bus_partition p \
             on p.topic = g.topic and p.partition = g.partition \
             where g.next_offset < p.next_offset",
        )
}

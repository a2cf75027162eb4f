//! Guests without an account in SQL.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Row, Tx, from_row, params};

use crate::ReservationId;
use crate::house_seats::guests::{GuestIndexes, SealedGuest};
use crate::in_list::for_each_chunk;

const COLUMNS: &str = "key_version, name_cipher, name_index, email_cipher, email_index";

pub fn guest_read(row: &Row<'_>) -> DbResult<SealedGuest> {
    Ok(from_row!(row => SealedGuest {
        key_version, name_cipher, name_index, email_cipher, email_index
    }))
}

pub fn guest_insert(tx: &mut Tx<'_>, id: ReservationId, guest: &SealedGuest) -> DbResult<()> {
    tx.execute(
        "insert into house_guests (reservation_id, key_version, name_cipher, name_index, \
         email_cipher, email_index) values ($1, $2, $3, $4, $5, $6)",
        params![
            id,
            guest.key_version,
            guest.name_cipher,
            guest.name_index,
            guest.email_cipher,
            guest.email_index
        ],
    )
    .map(drop)
}

pub fn guest_find(tx: &mut Tx<'_>, id: ReservationId) -> DbResult<Option<SealedGuest>> {
    let sql = format!("select {COLUMNS} from house_guests where reservation_id = $1");
    tx.query_opt(&sql, params![id], guest_read)
}

/// The guests whose reservations belong to these.
pub fn guest_list(
    tx: &mut Tx<'_>,
    user_ids: &[Uuid],
) -> DbResult<Vec<(Uuid, ReservationId, SealedGuest)>> {
    let mut guests = Vec::new();
    for_each_chunk(user_ids, &[], |list, values| {
        let sql = format!(
            "select r.user_id, h.reservation_id, {COLUMNS} from house_guests as h \
             join reservations as r on r.id = h.reservation_id where r.user_id in ({list})"
        );
        let found = tx.query(&sql, values, |row| {
            Ok((row.get("user_id")?, row.get("reservation_id")?, guest_read(row)?))
        });
        guests.extend(found?);
        Ok(())
    })?;
    Ok(guests)
}

/// Whose reservations have a guest with this name or address: `limit` per key at most.
pub fn guest_owners(tx: &mut Tx<'_>, indexes: &[GuestIndexes], limit: u32) -> DbResult<Vec<Uuid>> {
    let mut owners = Vec::new();
    for GuestIndexes { name, email } in indexes {
        owners.extend(tx.query(
            "select r.user_id from house_guests as h \
             join reservations as r on r.id = h.reservation_id \
             where h.name_index = $1 or h.email_index = $2 order by r.id desc limit $3",
            params![name, email, limit],
            |row| row.get::<Uuid>("user_id"),
        )?);
    }
    Ok(owners)
}

/// Erases guests of events that began, and of tickets that were revoked, before this time.
pub fn guests_delete(tx: &mut Tx<'_>, before: Timestamp, limit: u32) -> DbResult<u64> {
    tx.execute(
        "delete from house_guests where reservation_id in (select h.reservation_id \
         from house_guests as h join reservations as r on r.id = h.reservation_id \
         join sales as s on s.event_id = r.event_id where s.starts_at < $1 \
         or (r.status = 'cancelled' and r.updated_at < $1) order by h.reservation_id limit $2)",
        params![before, limit],
    )
}

/// In the order of their reservations.
pub fn guest_list_after(
    tx: &mut Tx<'_>,
    after: ReservationId,
    limit: u32,
) -> DbResult<Vec<(ReservationId, SealedGuest)>> {
    let sql = format!(
        "select reservation_id, {COLUMNS} from house_guests where reservation_id > $1 \
         order by reservation_id limit $2"
    );
    tx.query(&sql, params![after, limit], |row| Ok((row.get("reservation_id")?, guest_read(row)?)))
}

pub fn guest_list_with_other_key(
    tx: &mut Tx<'_>,
    key_version: u16,
    limit: u32,
) -> DbResult<Vec<(ReservationId, SealedGuest)>> {
    let sql = format!(
        "select reservation_id, {COLUMNS} from house_guests where key_version <> $1 \
         order by reservation_id limit $2"
    );
    tx.query(&sql, params![key_version, limit], |row| {
        Ok((row.get("reservation_id")?, guest_read(row)?))
    })
}

/// `false` if somebody else has encrypted it anew.
pub fn guest_reseal(
    tx: &mut Tx<'_>,
    (id, old): &(ReservationId, SealedGuest),
    new: &SealedGuest,
) -> DbResult<bool> {
    let rows = tx.execute(
        "update house_guests set key_version = $2, name_cipher = $3, name_index = $4, \
         email_cipher = $5, email_index = $6 where reservation_id = $1 and key_version = $7",
        params![
            id,
            new.key_version,
            new.name_cipher,
            new.name_index,
            new.email_cipher,
            new.email_index,
            old.key_version
        ],
    )?;
    Ok(rows == 1)
}

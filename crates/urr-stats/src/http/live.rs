//! The money of one sale, for the live board that the queue service shows.

use urr_contracts::internal::stats::{GetSaleHistory, GetSaleTotals, SaleHistory, SaleTotals};
use urr_kernel::{CallContext, Timestamp};
use urr_service::{ApiError, InternalCalls};
use urr_storage::{StorageError, Tx, storable_time};

use crate::StatsService;
use crate::domain::live::{minutes, spans};
use crate::store::live::{queue_minute_list, sale_list, sale_totals};

pub fn calls(stats: StatsService) -> InternalCalls<StatsService> {
    InternalCalls::new(stats).serve(get_sale_totals).serve(get_sale_history)
}

async fn get_sale_totals(
    stats: StatsService,
    GetSaleTotals { event_id }: GetSaleTotals,
    _: CallContext,
) -> Result<SaleTotals, ApiError> {
    Ok(stats.db.read(move |tx| sale_totals(tx, event_id)).await?)
}

async fn get_sale_history(
    stats: StatsService,
    GetSaleHistory { event_id, seconds_since, minutes_since }: GetSaleHistory,
    _: CallContext,
) -> Result<SaleHistory, ApiError> {
    let (seconds_since, since) = (storable_time(seconds_since), storable_time(minutes_since));
    let read = move |tx: &mut Tx<'_>| {
        let sales = sale_list(tx, event_id, since)?;
        let rooms = queue_minute_list(tx, event_id, since)?;
        let is_recent = |(at, _): &&(Timestamp, SaleTotals)| *at >= seconds_since;
        let recent: Vec<_> = sales.iter().filter(is_recent).copied().collect();
        Ok::<_, StorageError>(SaleHistory {
            totals: sale_totals(tx, event_id)?,
            seconds: spans(&recent, 1),
            minutes: minutes(&sales, &rooms),
        })
    };
    Ok(stats.db.read(read).await?)
}

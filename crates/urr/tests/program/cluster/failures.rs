//! Lets every row of the table of failures happen on one cluster, compares what fans are answered,
//! and heals: everything is back within seconds, and everybody has what they had.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::runtime::Runtime;
use tokio::time::sleep;

use super::failure_table::{
    Act, COLLECTOR, Failure, FailureRow, KAFKA, MAIL_SERVER, PROVIDER, ROWS, table,
};
use super::shop::{ClusterShop, ShopAnswer, ShopFan, place_number, reservation_id};
use super::{PATIENCE, TestCluster};
use crate::process::eventually_within;

const RECOVERY_MAX: Duration = Duration::from_secs(10);
/// The gateway gives up a request after half of this time, as the settings of the cluster say.
const ANSWER_MAX: Duration = Duration::from_secs(20);
/// A payment in flight is taken over by then.
const RESUMED_WITHIN: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(100);
const SLOW_BY: Duration = Duration::from_millis(50);
/// So often in a row everything works, before another part fails: by then every process of a role, and
/// every breaker before it, has recovered.
const WORKS_IN_A_ROW: u32 = 4;
/// Longer than the gateway waits for anything.
const LATE_BY: Duration = Duration::from_secs(15);

/// The documentation shows the table that is tested.
#[test]
fn the_table_of_failures_is_documented() -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/OPERATIONS.md");
    let text = fs::read_to_string(&path)?;
    let (head, rest) = text.split_once("| part | fails |").context("the table is there")?;
    let (_, tail) = rest.split_once("\n\n").context("something follows")?;
    let expected = format!("{head}{}\n{tail}", table());
    if std::env::var_os("URR_TEST_UPDATE").is_some() {
        fs::write(&path, &expected)?;
    }
    ensure!(fs::read_to_string(&path)? == expected, "URR_TEST_UPDATE=1 writes the table");
    Ok(())
}

/// Where everything fails.
pub struct FailureRun<'a> {
    pub cluster: &'a TestCluster,
    pub runtime: &'a Runtime,
    pub shop: &'a ClusterShop,
}

/// People in every state of a purchase, before the failure.
struct Cast {
    new: ShopFan,
    waiting: ShopFan,
    number: i64,
    admitted: ShopFan,
    entry_token: String,
    buyer: ShopFan,
    reservation: String,
    sold_seats: i64,
}

/// How fans were answered while a part failed.
struct RowAnswers {
    /// What the table does not say.
    wrong: Vec<String>,
    purchases: i64,
}

impl Cast {
    async fn assemble(shop: &ClusterShop) -> Result<Cast> {
        let (waiting, admitted, buyer) = (shop.fan(), shop.fan(), shop.fan());
        let told = shop.join(&waiting, shop.later_event_id).await.is(200)?;
        let token = shop.enter(&buyer).await?;
        let held = shop.hold(&buyer, &token).await.is(201)?;
        Ok(Cast {
            new: shop.fan(),
            number: place_number(&told)?,
            waiting,
            entry_token: shop.enter(&admitted).await?,
            admitted,
            reservation: reservation_id(&held),
            buyer,
            sold_seats: shop.sold_seats().await?,
        })
    }

    /// Of somebody who registers meanwhile, and is to get a mail.
    fn address(&self) -> String {
        format!("fan-{}@example.com", self.number)
    }

    async fn act(&self, shop: &ClusterShop, act: Act, card: &str) -> ShopAnswer {
        match act {
            Act::Page => shop.page().await,
            Act::Login => shop.log_in().await,
            Act::Join => shop.join(&self.new, shop.event_id).await,
            Act::Place => shop.place(&self.waiting).await,
            Act::Hold => shop.hold(&self.admitted, &self.entry_token).await,
            Act::Pay => shop.pay(&self.buyer, &self.reservation, card).await,
            Act::Mine => shop.own_reservations(&self.buyer).await,
        }
    }
}

impl FailureRun<'_> {
    /// All rows, and the proof that nothing was lost by any of them.
    pub fn check(&self) -> Result<()> {
        let mut buyers = Vec::new();
        let mut wrong = Vec::new();
        for row in ROWS {
            for failure in row.failures {
                let mut found = self.let_happen(row, *failure, &mut buyers)?;
                if !found.is_empty() {
                    // A machine that had too much to do has less now; a wrong answer comes again.
                    tell("once more");
                    found = self.let_happen(row, *failure, &mut buyers)?;
                }
                wrong.append(&mut found);
            }
        }
        self.check_buyers(&buyers)?;
        ensure!(wrong.is_empty(), "{wrong:#?}");
        Ok(())
    }

    /// Lets a part fail and heals it. Returns what was otherwise than the table says.
    fn let_happen(
        &self,
        row: &FailureRow,
        failure: Failure,
        buyers: &mut Vec<(String, ShopFan, String)>,
    ) -> Result<Vec<String>> {
        let name = format!("{} {failure}", row.part);
        let cast = self.assemble().with_context(|| format!("before {name}"))?;
        let begun = Instant::now();
        let answers = self.happen(row, failure, &cast).with_context(|| name.clone())?;
        let mut wrong = answers.wrong;
        let broken = begun.elapsed();
        let back = self.recover(row, failure, &cast, answers.purchases);
        let back = back.with_context(|| format!("after {name}"))?;
        if back > RECOVERY_MAX {
            wrong.push(format!("back after {back:?}"));
        }
        wrong.iter_mut().for_each(|found| *found = format!("{name}: {found}"));
        wrong.iter().for_each(|found| tell(found));
        tell(&format!("{name}: {broken:.1?}, back after {back:.1?}"));
        buyers.push((name, cast.buyer, cast.reservation));
        Ok(wrong)
    }

    /// People for the next row. The second process of a role may still be recovering from the last one.
    fn assemble(&self) -> Result<Cast> {
        let begun = Instant::now();
        self.runtime.block_on(async {
            loop {
                match Cast::assemble(self.shop).await {
                    Err(error) if begun.elapsed() > RECOVERY_MAX => return Err(error),
                    Err(_) => sleep(PAUSE).await,
                    Ok(cast) => return Ok(cast),
                }
            }
        })
    }

    /// Lets the part fail, and everybody act.
    fn happen(&self, row: &FailureRow, failure: Failure, cast: &Cast) -> Result<RowAnswers> {
        self.harm(row, failure)?;
        if row.part == MAIL_SERVER {
            self.runtime.block_on(self.shop.register(self.cluster, &cast.address()))?;
        }
        let card = card(row, failure);
        let acts = Act::ALL.map(|act| async move {
            let begun = Instant::now();
            (act, cast.act(self.shop, act, card).await.text(), begun.elapsed())
        });
        let answers = self.runtime.block_on(futures_util::future::join_all(acts));
        let mut found = RowAnswers { wrong: Vec::new(), purchases: 0 };
        for (act, answer, took) in answers {
            if act == Act::Pay && answer == act.usual() {
                found.purchases += 1;
            }
            let expected = row.expected(act);
            if !expected.contains(&answer.as_str()) || took > ANSWER_MAX {
                let text = format!("{act} {answer} after {took:.1?} instead of {expected:?}");
                found.wrong.push(text);
            }
        }
        Ok(found)
    }

    fn harm(&self, row: &FailureRow, failure: Failure) -> Result<()> {
        let word = match failure {
            Failure::Refused => "close",
            Failure::Slow | Failure::Late => "slow",
            Failure::Dead => "silence",
            Failure::Wrong => "garble",
            Failure::Full => "fill",
        };
        let late_by = if failure == Failure::Late { LATE_BY } else { SLOW_BY };
        let late_ms = late_by.as_millis().to_string();
        for line in row.lines {
            self.cluster.run(&["line", line, word, "--ms", &late_ms])?.succeeded()?;
        }
        Ok(())
    }

    /// Heals the part. Returns how long it took until everything worked again, without what the same
    /// takes on this machine when all is well.
    fn recover(
        &self,
        row: &FailureRow,
        failure: Failure,
        cast: &Cast,
        purchases: i64,
    ) -> Result<Duration> {
        let has_mail = || self.shop.has_mail(self.cluster, &cast.address());
        let waits = row.part != MAIL_SERVER || !has_mail()?;
        ensure!(waits, "the mail went out without its server");
        if row.part == COLLECTOR {
            let log = fs::read_to_string(self.cluster.folder().join("members/gateway-1/log"))?;
            ensure!(log.contains("spans are lost"), "the collector is not missed: {log}");
        }
        for line in row.lines {
            self.cluster.run(&["line", line, "heal"])?.succeeded()?;
        }
        if row.part == KAFKA && failure == Failure::Full {
            // It was started again, and recovers its partitions one by one.
            eventually_within(PATIENCE, "Kafka serves", || self.cluster.can_read_topics())?;
        }
        let mut took = self.time_journey(row, cast, purchases)?;
        if took > RECOVERY_MAX {
            took = took.saturating_sub(self.time_journey(row, cast, purchases)?);
        }
        if !row.answers.is_empty() {
            self.runtime.block_on(self.await_everything(cast))?;
        }
        // Turns are few, and this row needs no more. The second process may recover last.
        let healed = Instant::now();
        self.runtime.block_on(async {
            for fan in [&cast.new, &cast.admitted, &cast.buyer] {
                self.retry(healed, async || self.shop.leave(fan).await.is(200).map(drop)).await?;
            }
            Ok(took)
        })
    }

    /// How long it takes until everything has worked once, and the statistics know of what was bought
    /// while Kafka failed.
    fn time_journey(&self, row: &FailureRow, cast: &Cast, purchases: i64) -> Result<Duration> {
        let healed = Instant::now();
        self.runtime.block_on(async {
            self.retry(healed, async || self.shop.page().await.is(200).map(drop)).await?;
            self.retry(healed, async || self.shop.log_in().await.is(200).map(drop)).await?;
            self.retry(healed, async || self.buy().await).await?;
            self.retry(healed, async || {
                let told = self.shop.place(&cast.waiting).await.is(200)?;
                ensure!(place_number(&told)? == cast.number, "the place is lost: {told}");
                self.shop.own_reservations(&cast.buyer).await.is(200).map(drop)
            })
            .await?;
            // Who was admitted still is; the hold may have been made before.
            self.retry(healed, async || {
                let held = self.shop.hold(&cast.admitted, &cast.entry_token).await;
                let is_held = ["201", "409 HOLD_IN_PROGRESS", "409 SEAT_LIMIT"];
                ensure!(is_held.contains(&held.text().as_str()), "{held:?}");
                Ok(())
            })
            .await?;
            // What happened meanwhile, and since, reaches everybody.
            if row.part == MAIL_SERVER {
                let has_mail = || self.shop.has_mail(self.cluster, &cast.address());
                self.retry(healed, async || {
                    ensure!(has_mail()?, "the mail is lost");
                    Ok(())
                })
                .await?;
            }
            if row.part != KAFKA {
                return Ok(());
            }
            self.retry(healed, async || {
                let sold = self.shop.sold_seats().await?;
                let expected = cast.sold_seats + purchases + 1;
                ensure!(sold >= expected, "the statistics know of {sold} seats");
                Ok(())
            })
            .await
        })?;
        Ok(healed.elapsed())
    }

    /// Waits until the second process of each role works too. How long the first took was judged.
    async fn await_everything(&self, cast: &Cast) -> Result<()> {
        let (healed, mut worked) = (Instant::now(), 0);
        while worked < WORKS_IN_A_ROW {
            match self.use_everything(cast).await {
                Ok(()) => worked += 1,
                Err(error) if healed.elapsed() > 12 * RECOVERY_MAX => return Err(error),
                Err(_) => {
                    worked = 0;
                    sleep(PAUSE).await;
                }
            }
        }
        Ok(())
    }

    async fn use_everything(&self, cast: &Cast) -> Result<()> {
        self.shop.page().await.is(200)?;
        self.shop.log_in().await.is(200)?;
        self.shop.place(&cast.waiting).await.is(200)?;
        self.shop.own_reservations(&cast.buyer).await.is(200)?;
        self.buy().await
    }

    /// Somebody new buys. Who cannot gives the turn back, if that works: turns are few.
    async fn buy(&self) -> Result<()> {
        let fan = self.shop.fan();
        let bought = self.shop.buy(&fan).await;
        if bought.is_err() {
            self.shop.leave(&fan).await;
        }
        bought
    }

    /// Tries until it works; how long it took is judged elsewhere.
    async fn retry(&self, healed: Instant, act: impl AsyncFn() -> Result<()>) -> Result<()> {
        loop {
            match act().await {
                Ok(()) => return Ok(()),
                Err(error) if healed.elapsed() > 12 * RECOVERY_MAX => return Err(error),
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    /// Everybody who held a seat when a part failed gets it: by the payment that was interrupted,
    /// or by paying again.
    fn check_buyers(&self, buyers: &[(String, ShopFan, String)]) -> Result<()> {
        let ends_at = Instant::now() + RESUMED_WITHIN;
        self.runtime.block_on(async {
            for (name, fan, reservation) in buyers {
                loop {
                    let status = self.shop.status_of(fan, reservation).await?;
                    if status == "confirmed" {
                        break;
                    }
                    ensure!(Instant::now() < ends_at, "{name}: {status}");
                    self.shop.pay(fan, reservation, "approve").await;
                    sleep(PAUSE).await;
                }
            }
            Ok(())
        })
    }
}

/// The sandbox does what its test cards say.
fn card(row: &FailureRow, failure: Failure) -> &'static str {
    match failure {
        _ if row.part != PROVIDER => "approve",
        Failure::Slow => "slow",
        Failure::Dead => "charge-timeout",
        _ => "charge-500",
    }
}

#[expect(clippy::print_stderr, reason = "how long each part took is worth knowing")]
pub fn tell(line: &str) {
    eprintln!("{line}");
}

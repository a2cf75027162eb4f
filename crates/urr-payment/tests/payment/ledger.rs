//! The proof of the books finds what is wrong: each case breaks one thing by hand.

use urr_kernel::Won;
use urr_payment::LedgerDifference;
use urr_payment::provider::TestCard;
use urr_storage::StorageError;

use crate::contract;
use crate::fixture::World;

async fn run(world: &World, sql: &'static str) {
    let done: Result<u64, StorageError> = world.db.write(move |tx| tx.execute(sql, &[])).await;
    assert!(done.unwrap() > 0, "{sql}");
}

async fn unexplained(world: &World) -> Vec<LedgerDifference> {
    world.payments.prove_ledger().await.unwrap().unexplained
}

contract! {
    async fn a_line_of_a_won_too_much_is_named(world: World) {
        world.pay(TestCard::Approve).await;
        assert_eq!(unexplained(&world).await, []);
        run(&world, "update ledger_lines set amount = amount - 1 where account = 'sales'").await;
        let found = unexplained(&world).await;
        assert!(matches!(found[0], LedgerDifference::Entry { amount, .. } if amount == Won::new(-1)));
        assert_eq!(found[1], LedgerDifference::Accounts { amount: Won::new(-1) });
    }

    async fn a_charge_that_is_not_in_the_books_is_named(world: World) {
        let (_, payment) = world.pay(TestCard::Approve).await;
        run(&world, "update payments set charged_amount = charged_amount + 5").await;
        let (id, amount) = (payment.id.0, Won::new(-5));
        assert_eq!(unexplained(&world).await, [LedgerDifference::Payment { id, amount }]);
    }

    async fn money_for_which_nothing_was_given_is_named(world: World) {
        let (_, payment) = world.pay(TestCard::Approve).await;
        run(&world, "delete from ledger_lines where entry_id in \
                     (select id from ledger_entries where kind = 'deliver')").await;
        let (payment_id, amount) = (payment.id.0, Won::new(-102_000));
        let left = LedgerDifference::Left { payment_id, account: "deposits".to_owned(), amount };
        assert_eq!(unexplained(&world).await, [left]);
    }

    async fn a_refund_that_never_reached_the_provider_is_named(world: World) {
        let (_, payment) = world.pay(TestCard::Approve).await;
        world.tickets.cancel(payment.payable.id);
        world.settle().await;
        assert_eq!(unexplained(&world).await, []);
        run(&world, "delete from ledger_lines where entry_id in \
                     (select id from ledger_entries where kind = 'refund')").await;
        let found = unexplained(&world).await;
        assert!(matches!(&found[0], LedgerDifference::Payment { id, .. } if *id == payment.id.0));
        assert!(matches!(&found[1], LedgerDifference::Left { account, .. } if account == "refunds_due"));
    }

    async fn the_proof_can_be_read(world: World) {
        world.pay(TestCard::Approve).await;
        let text = world.payments.prove_ledger().await.unwrap().to_string();
        assert!(text.contains("provider                       102,000원"), "{text}");
        assert!(text.ends_with("\nbalanced"), "{text}");
        run(&world, "update payments set charged_amount = charged_amount + 5").await;
        let text = world.payments.prove_ledger().await.unwrap().to_string();
        assert!(text.ends_with("NOT BALANCED"), "{text}");
    }
}

-- Nobody looks for lines by their account.
drop index ledger_lines_by_account;

-- PostgreSQL runs a query for each row that refers to another: eight for a purchase. The program writes
-- both rows in one transaction. SQLite keeps the references, so that tests find a wrong one.
-- only: postgres
alter table ledger_lines drop constraint ledger_lines_entry_id_fkey;
-- only: postgres
alter table ledger_entries drop constraint ledger_entries_payment_id_fkey;
-- only: postgres
alter table provider_calls drop constraint provider_calls_payment_id_fkey;
-- only: postgres
alter table sandbox_movements drop constraint sandbox_movements_payment_key_fkey;

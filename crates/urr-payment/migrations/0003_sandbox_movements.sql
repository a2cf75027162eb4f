-- The movements of one payment, for the audit and for the key that refers to it.
create index sandbox_movements_of_payment on sandbox_movements (payment_key);

//! The services that are asked about people, payments and mails when somebody looks after
//! reservations. A sale does not depend on them.

use urr_contracts::clients::{AuthClient, MailClient, PaymentClient};

/// The peers of the ticket service.
#[derive(Clone, Debug)]
pub struct TicketPeers {
    pub auth: AuthClient,
    pub payment: PaymentClient,
    pub mail: MailClient,
}

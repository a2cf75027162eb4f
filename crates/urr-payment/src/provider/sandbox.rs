//! A provider without money, for the demo and for tests.

use super::{Charge, Found, Outcome, ProviderPayment, Return};

#[derive(Clone)]
pub struct Sandbox;

#[expect(clippy::unused_async, reason = "not built yet")]
impl Sandbox {
    pub async fn confirm(&self, _charge: &Charge) -> Outcome<ProviderPayment> {
        Outcome::Unknown { code: "NOT_BUILT".to_owned() }
    }

    pub async fn cancel(&self, _what: &Return) -> Outcome<ProviderPayment> {
        Outcome::Unknown { code: "NOT_BUILT".to_owned() }
    }

    pub async fn find(&self, _order_id: &str, _payment_key: Option<&str>) -> Found {
        Found::Unknown { code: "NOT_BUILT".to_owned() }
    }
}

//! Whether this visitor may use this route at all.

use urr_kernel::Uuid;
use urr_service::{ApiError, Role};

use crate::routes::Policy;
use crate::visitor::Visitor;

/// Whom the policy lets through: a user where it asks for one, and perhaps one where it does not.
pub fn keep_policy(policy: Policy, visitor: Visitor) -> Result<Option<Uuid>, ApiError> {
    let (id, role) = match (policy, visitor) {
        (_, Visitor::User { id, role }) => (id, role),
        (Policy::Public, _) => return Ok(None),
        (_, Visitor::Invalid(fault)) => return Err(fault.error()),
        (_, Visitor::Anonymous) => {
            let sentence = "Please log in first.";
            return Err(ApiError::unauthorized("AUTHENTICATION_REQUIRED", sentence));
        }
    };
    match (policy, role) {
        (Policy::Admin, Role::User) => {
            Err(ApiError::forbidden("ADMIN_REQUIRED", "This is for administrators only."))
        }
        (_, _) => Ok(Some(id)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::visitor::TokenFault;

    #[test]
    fn each_policy_lets_its_own_in_and_nobody_else() {
        let user = |role| Visitor::User { id: Uuid::from_u128(1), role };
        let visitors = [
            Visitor::Anonymous,
            Visitor::Invalid(TokenFault::Expired),
            user(Role::User),
            user(Role::Admin),
        ];
        let code = |policy, visitor| match keep_policy(policy, visitor) {
            Ok(_) => "ok".to_owned(),
            Err(error) => error.code().to_owned(),
        };
        let codes = |policy| visitors.map(|visitor| code(policy, visitor));
        assert_eq!(codes(Policy::Public), ["ok", "ok", "ok", "ok"]);
        let logged_in = ["AUTHENTICATION_REQUIRED", "TOKEN_EXPIRED", "ok", "ok"];
        assert_eq!(codes(Policy::User), logged_in);
        assert_eq!(codes(Policy::Admitted), logged_in);
        let admins = ["AUTHENTICATION_REQUIRED", "TOKEN_EXPIRED", "ADMIN_REQUIRED", "ok"];
        assert_eq!(codes(Policy::Admin), admins);
    }
}

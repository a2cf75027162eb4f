//! The codes by which Toss says no to a payment.
//!
//! A code is in a list only if it is a verdict on this payment, from which follows that nothing was
//! moved by this request or by an earlier one with the same key. So these are deliberately absent:
//! whatever is about our credential (`UNAUTHORIZED_KEY`, `INVALID_API_KEY`, `FORBIDDEN_REQUEST` …)
//! or about too many requests, whatever says that the work was done or is being done
//! (`ALREADY_PROCESSED_PAYMENT`, `DUPLICATED_ORDER_ID`, `ALREADY_CANCELED_PAYMENT`,
//! `IDEMPOTENT_REQUEST_PROCESSING` …), and whatever passes (`PROVIDER_ERROR`).

/// Nothing is charged.
pub(super) const CONFIRM_DECLINED: &[&str] = &[
    "BELOW_MINIMUM_AMOUNT",
    "EXCEED_MAX_AMOUNT",
    "EXCEED_MAX_AUTH_COUNT",
    "EXCEED_MAX_CARD_INSTALLMENT_PLAN",
    "EXCEED_MAX_DAILY_PAYMENT_COUNT",
    "EXCEED_MAX_MONTHLY_PAYMENT_AMOUNT",
    "EXCEED_MAX_ONE_DAY_AMOUNT",
    "EXCEED_MAX_ONE_DAY_WITHDRAW_AMOUNT",
    "EXCEED_MAX_ONE_TIME_WITHDRAW_AMOUNT",
    "EXCEED_MAX_PAYMENT_AMOUNT",
    "FDS_ERROR",
    "INVALID_ACCOUNT_INFO_RE_REGISTER",
    "INVALID_AUTHORIZE_AUTH",
    "INVALID_CARD_EXPIRATION",
    "INVALID_CARD_INSTALLMENT_PLAN",
    "INVALID_CARD_LOST_OR_STOLEN",
    "INVALID_CARD_NUMBER",
    "INVALID_PASSWORD",
    "INVALID_REJECT_CARD",
    "INVALID_REQUEST",
    "INVALID_STOPPED_CARD",
    "NOT_ALLOWED_POINT_USE",
    "NOT_AVAILABLE_BANK",
    "NOT_AVAILABLE_PAYMENT",
    "NOT_FOUND_PAYMENT",
    "NOT_FOUND_PAYMENT_SESSION",
    "NOT_SUPPORTED_INSTALLMENT_PLAN_CARD_OR_MERCHANT",
    "NOT_SUPPORTED_MONTHLY_INSTALLMENT_PLAN",
    "REJECT_ACCOUNT_PAYMENT",
    "REJECT_CARD_COMPANY",
    "REJECT_CARD_PAYMENT",
    "REJECT_TOSSPAY_INVALID_ACCOUNT",
    "RESTRICTED_TRANSFER_ACCOUNT",
    "UNAPPROVED_ORDER_ID",
];

/// Nothing is refunded.
pub(super) const CANCEL_DECLINED: &[&str] = &[
    "EXCEED_CANCEL_AMOUNT_DISCOUNT_AMOUNT",
    "EXCEED_MAX_REFUND_DUE",
    "FORBIDDEN_BANK_REFUND_REQUEST",
    "INVALID_BANK",
    "INVALID_REFUND_ACCOUNT_INFO",
    "INVALID_REFUND_ACCOUNT_NUMBER",
    "INVALID_REQUEST",
    "NOT_ALLOWED_PARTIAL_REFUND",
    "NOT_ALLOWED_PARTIAL_REFUND_WAITING_DEPOSIT",
    "NOT_CANCELABLE_AMOUNT",
    "NOT_CANCELABLE_PAYMENT",
    "NOT_CANCELABLE_PAYMENT_FOR_DORMANT_USER",
    "NOT_FOUND_PAYMENT",
    "REFUND_REJECTED",
];

/// Codes with a failure status that are about one payment and its bank. If they counted as failures
/// of Toss, a few bad accounts would open the breaker for everybody (M-12).
pub(super) const FAILED_FOR_ONE: &[&str] = &[
    "FAILED_CLOSED_ACCOUNT_REFUND",
    "FAILED_METHOD_HANDLING_CANCEL",
    "FAILED_PARTIAL_REFUND",
    "FAILED_REFUND_PROCESS",
    "UNKNOWN_PAYMENT_ERROR",
];

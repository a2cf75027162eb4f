/** What a refusal means for a fan. Codes without an own sentence get the server's. */
import * as m from '$lib/text/messages';
import type { ApiFailure } from './failure';

const SENTENCES: Record<string, (failure: ApiFailure) => string> = {
  OFFLINE: m.error_offline,
  NETWORK: m.error_network,
  RATE_LIMITED: (failure) => m.error_rate_limited({ seconds: failure.retryAfterSeconds ?? 60 }),
  INTERNAL_ERROR: m.error_internal,
  OUTCOME_UNKNOWN: m.error_outcome_unknown,
  OVERLOADED: m.error_busy,
  BUSY: m.error_busy,
  LOGIN_BUSY: m.error_busy,
  STORAGE_UNAVAILABLE: m.error_busy,
  SERVICE_UNAVAILABLE: m.error_busy,
  DEADLINE_EXCEEDED: m.error_busy,
  UPSTREAM_TIMEOUT: m.error_busy,
  AUTHENTICATION_REQUIRED: m.login_needed_text,
  TOKEN_EXPIRED: m.login_needed_text,
  TOKEN_REVOKED: m.login_needed_text,
  TOKEN_INVALID: m.login_needed_text,
  INVALID_CREDENTIALS: m.error_invalid_credentials,
  INVALID_EMAIL: m.error_invalid_email,
  INVALID_PASSWORD: m.error_invalid_password,
  INVALID_NAME: m.error_invalid_name,
  INVALID_PHONE: m.error_invalid_phone,
  WRONG_PASSWORD: m.error_wrong_password,
  RECENT_LOGIN_REQUIRED: m.error_recent_login,
  REGISTRATION_FAILED: m.error_registration_failed,
  TERMS_REQUIRED: m.error_terms_required,
  EMAIL_IN_USE: m.error_email_in_use,
  SOCIAL_CANCELLED: m.error_social_cancelled,
  SOCIAL_LOGIN_REJECTED: m.error_social_rejected,
  SOCIAL_STATE_INVALID: m.error_social_rejected,
  PROVIDER_UNAVAILABLE: m.error_busy,
  PAYMENT_WINDOW_FAILED: m.error_payment_window,
  IDENTITY_WINDOW_FAILED: m.error_identity_window,
  MEMBERSHIP_REQUIRED: m.error_membership_required,
  ALREADY_MEMBER: m.error_already_member,
  TRANSFER_LISTED: m.error_transfer_listed,
  TRANSFER_BEING_PAID: m.error_transfer_being_paid,
  TRANSFER_SOLD: m.error_transfer_sold,
  EVENT_STARTED: m.error_event_started,
  EVENT_CANCELLED: m.error_event_cancelled,
};

export function sentence(failure: ApiFailure): string {
  return SENTENCES[failure.code]?.(failure) ?? failure.sentence ?? m.error_internal();
}

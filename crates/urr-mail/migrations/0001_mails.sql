-- One row per mail: its subject and its state. Neither addresses nor names are stored.
create table mails (
    id uuid primary key,
    kind text not null,
    -- What it is about: a reservation, a refund, a link, or the message that asked for it.
    subject_id uuid not null,
    user_id uuid not null,
    -- The reservation that it is about, if it is about one.
    reservation_id uuid,
    -- See src/domain/template_data.rs.
    template_data jsonb not null,
    -- Whether the ticket service was asked for what the event did not say.
    is_complete boolean not null,
    -- The language of the last attempt.
    language text,
    status text not null,
    -- The reason for dropping it, or the error of the last attempt.
    last_error text,
    -- How many attempts to send it began.
    attempts integer not null,
    -- Smaller numbers are sent first.
    priority smallint not null,
    due_at timestamptz not null,
    -- After this time it is dropped.
    useful_until timestamptz,
    -- The process that sends it, and until when no other may.
    lease_id uuid,
    leased_until timestamptz,
    created_at timestamptz not null,
    ended_at timestamptz,
    constraint mails_kind check (kind in ('purchase', 'complimentary', 'cancellation',
        'part_cancellation', 'event_moved', 'refund', 'admission_near', 'sale_alert', 'seat_alert',
        'email_verification', 'password_reset')),
    constraint mails_language check (language in ('ko', 'en')),
    constraint mails_status check (status in ('waiting', 'sent', 'failed', 'dropped')),
    constraint mails_ended check ((status = 'waiting') = (ended_at is null)),
    constraint mails_leased check ((lease_id is null) = (leased_until is null))
);

-- The last guard: a subject has one mail of each kind.
create unique index mails_once on mails (kind, subject_id);
create index mails_due on mails (priority, due_at, id) where status = 'waiting';
create index mails_of_reservation on mails (reservation_id, created_at)
    where reservation_id is not null;
create index mails_of_user on mails (user_id, created_at, id);
create index mails_by_time on mails (created_at, id);
create index mails_by_status on mails (status, created_at, id);

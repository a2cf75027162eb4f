-- One row per mail: what it is about, and how far it is. Neither addresses nor names are kept.
create table mails (
    id uuid primary key,
    kind text not null,
    -- What it is about: a reservation, a refund, or the message that asked for it.
    subject_id uuid not null,
    user_id uuid not null,
    -- What the template is filled with; see src/domain/facts.rs.
    facts jsonb not null,
    -- Whether the ticket office was asked for what the event did not say.
    is_complete boolean not null,
    -- The account's language, as it was when it was last asked for.
    language text,
    status text not null,
    -- Why it was dropped or has failed, or what the last attempt ended with.
    last_error text,
    -- How often it was given to the sender.
    attempts integer not null,
    -- Smaller ones are sent first, however long the others have waited.
    priority smallint not null,
    due_at timestamptz not null,
    -- Nobody wants to have it later.
    useful_until timestamptz,
    -- Whoever has it in hand, and until when nobody else should take it.
    lease_id uuid,
    leased_until timestamptz,
    created_at timestamptz not null,
    ended_at timestamptz,
    constraint mails_kind check (kind in ('purchase', 'cancellation', 'refund', 'turn_near')),
    constraint mails_language check (language in ('ko', 'en')),
    constraint mails_status check (status in ('waiting', 'sent', 'failed', 'dropped')),
    constraint mails_ended check ((status = 'waiting') = (ended_at is null)),
    constraint mails_leased check ((lease_id is null) = (leased_until is null))
);

-- The last guard: nobody is told the same twice.
create unique index mails_once on mails (kind, subject_id);
create index mails_due on mails (priority, due_at, id) where status = 'waiting';
create index mails_of_user on mails (user_id, created_at, id);
create index mails_by_time on mails (created_at, id);
create index mails_by_status on mails (status, created_at, id);

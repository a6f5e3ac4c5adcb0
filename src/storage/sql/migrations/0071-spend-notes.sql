-- Words that callers give with a payment, and approvals of changes.

create table spend_note (
  decision_id text collate "C" primary key references decision,
  account_id text not null references account,
  -- For the owner: why it is paid. Untrusted text.
  reason text,
  -- Kept with the payment: what it is for. Untrusted text.
  memo text,
  check (reason is not null or memo is not null)
);
create index spend_note_of_account on spend_note (account_id);

alter table approval
  -- Null: a change, which no spend decision is about.
  alter column decision_id drop not null,
  -- The key asked for it by itself, not by the call.
  add column is_asked boolean not null default false;
-- Finds what was decided on a call before.
create index approval_of_call on approval (key_id, fingerprint);
drop index approval_waiting;

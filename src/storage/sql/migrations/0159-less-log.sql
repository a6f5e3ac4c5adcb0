-- Less write-ahead log for a transfer: see docs/capacity.md.

-- A transaction of the ledger is in its first posting. As a row of its own it took another key and another index entry, under the same
-- name. Most transactions are named after their decision, which is their reference.
alter table posting
  add column kind text,
  add column reference text,
  add column at timestamptz;
alter table posting disable trigger user;
update posting p
set kind = t.kind, reference = case when t.reference <> split_part(t.id, ':', 1) then t.reference end, at = t.at
from ledger_transaction t where t.id = p.transaction_id and p.ordinal = 1;
alter table posting enable trigger user;
alter table posting
  add check ((ordinal = 1) = (kind is not null)),
  add check ((ordinal = 1) = (at is not null)),
  add check (ordinal = 1 or reference is null);
drop table ledger_transaction;
create view ledger_transaction as
select transaction_id as id, kind, coalesce(reference, split_part(transaction_id, ':', 1)) as reference, at
from posting where ordinal = 1;

-- Balances of system accounts are summed up over all postings, by the reconciliation: nothing read these.
drop index posting_from_system, posting_to_system;

-- No account is ever deleted. The check locked its row for each transfer.
alter table transfer drop constraint transfer_account_id_fkey;

-- By the hour: the time of each new key would change the range of its block with every key.
drop index idempotency_expired;
create index idempotency_expired on idempotency using brin (date_trunc('hour', created_at at time zone 'UTC')) with (autosummarize = on);

-- What another account's transfer brought is found by its posting.
drop index transfer_received;

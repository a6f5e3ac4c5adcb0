-- Decisions and their seals by month of their ids, so that a month can leave as a whole (`bursar archive`): it is detached, which
-- deletes no rows and leaves nothing to vacuum. Rows of a month without a partition are in the default one, because no spend may fail
-- for a missing partition.
--
-- No foreign key leads to a decision any more. A decision that is archived cannot be referenced, and the functions that write a row
-- about a decision write both in one transaction: the keys have never refused anything, and each took a lock on the decision's row.
-- This copies all decisions: it takes minutes for ten million of them, and as much free space as they have.
alter table aml_review drop constraint aml_review_decision_id_fkey, drop constraint aml_review_used_by_fkey;
alter table approval drop constraint approval_decision_id_fkey;
alter table card_pull drop constraint card_pull_decision_id_fkey;
alter table card_settlement drop constraint card_settlement_decision_id_fkey;
alter table funding drop constraint funding_decision_id_fkey;
alter table investing_order drop constraint investing_order_decision_id_fkey;
alter table payout drop constraint payout_decision_id_fkey;
alter table purchase drop constraint purchase_decision_id_fkey;
alter table relay drop constraint relay_decision_id_fkey;
alter table spend_note drop constraint spend_note_decision_id_fkey;
alter table transfer drop constraint transfer_decision_id_fkey;
alter table travel_rule drop constraint travel_rule_decision_id_fkey;

alter table decision rename to decision_before;
alter table decision_seal rename to decision_seal_before;
create table decision (like decision_before including defaults including constraints) partition by range (id);
create table decision_seal (like decision_seal_before including defaults including constraints) partition by range (decision_id);
create table decision_default partition of decision default;
create table decision_seal_default partition of decision_seal default;

-- A partition for each month that has decisions. The bounds are those of first_id_at.
do $$
declare
  v_month timestamptz;
  v_bounds text[];
  v_ms bigint;
  v_text text;
begin
  for v_month in
    select distinct date_trunc('month', to_timestamp(m.ms / 1000.0) at time zone 'UTC') at time zone 'UTC'
    from decision_before d cross join lateral (
      select sum((strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(d.id, 4 + i, 1)) - 1) * 32::bigint ^ (10 - i)) as ms
      from generate_series(1, 10) i
    ) m
    where d.id ~ '^dec_0[0-9a-hjkmnp-tv-z]{25}$'
  loop
    v_bounds := '{}';
    foreach v_ms in array array[extract(epoch from v_month) * 1000,
      extract(epoch from (v_month at time zone 'UTC' + interval '1 month') at time zone 'UTC') * 1000]::bigint[]
    loop
      v_text := '';
      for i in 1..10 loop
        v_text := substr('0123456789abcdefghjkmnpqrstvwxyz', (v_ms % 32)::int + 1, 1) || v_text;
        v_ms := v_ms / 32;
      end loop;
      v_bounds := v_bounds || ('dec_' || v_text);
    end loop;
    execute format('create table %I partition of decision for values from (%L) to (%L)',
      to_char(v_month at time zone 'UTC', '"decision_"YYYY_MM'), v_bounds[1], v_bounds[2]);
    execute format('create table %I partition of decision_seal for values from (%L) to (%L)',
      to_char(v_month at time zone 'UTC', '"decision_seal_"YYYY_MM'), v_bounds[1], v_bounds[2]);
  end loop;
end $$;

insert into decision select * from decision_before;
insert into decision_seal select * from decision_seal_before;
drop table decision_before, decision_seal_before;

alter table decision add primary key (id);
create index decision_by_writer on decision (written_by, id);
create index decision_of_account on decision (account_id, id);
create index decision_of_fx_payment on decision ((facts #>> '{found,paymentId}')) where operation = 'x402.fx' and verdict = 'allow';
create index decision_refused on decision (account_id, at) where verdict in ('deny', 'insufficient_funds');
alter table decision_seal add primary key (decision_id);
create index decision_seal_by_sequence on decision_seal (sequence);

-- The end of the chain. No index over all partitions can hold that a sequence is there once: new seals must continue here instead.
create table decision_head (
  is_only boolean primary key default true check (is_only),
  sequence bigint not null check (sequence >= 0),
  hash text not null check (hash ~ '^[0-9a-f]{64}$')
);
insert into decision_head (sequence, hash)
select s.sequence, s.hash from decision_seal s order by s.sequence desc limit 1;
insert into decision_head (sequence, hash) values (0, repeat('0', 64)) on conflict do nothing;

-- A month that left. Its decisions are the chain from `first_sequence` to `last_sequence`; `previous` and `hash` are before and at its
-- end. What was sealed after the first decision of the next month stays, in the default partition, until that month leaves.
create table archive (
  month date primary key check (extract(day from month) = 1),
  first_sequence bigint not null unique check (first_sequence > 0),
  last_sequence bigint not null unique,
  previous text not null check (previous ~ '^[0-9a-f]{64}$'),
  hash text not null check (hash ~ '^[0-9a-f]{64}$'),
  -- Of the signed manifest of its files.
  manifest_hash text not null check (manifest_hash ~ '^[0-9a-f]{64}$'),
  at timestamptz not null,
  -- By the data key: nobody else can say of deleted decisions that they were archived.
  mac text not null check (mac ~ '^[0-9a-f]{64}$'),
  check (last_sequence >= first_sequence)
);

-- What histories, statements and details show of archived decisions that something still refers to. Refusals leave altogether.
create table archived_decision (
  id text collate "C" primary key,
  at timestamptz not null,
  account_id text collate "C" not null,
  key_id text collate "C",
  policy_version integer,
  policy_hash text,
  operation text not null,
  facts jsonb not null,
  verdict text not null
);

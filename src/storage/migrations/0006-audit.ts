/**
 * The chain of decisions. A job seals them, a spend does not wait for it: all that a decision carries for it is the number of
 * the transaction that wrote it. Numbers below the oldest transaction that still runs are finished for good, so whoever read
 * up to there has missed nothing, however late a decision was committed; ids by time cannot promise that.
 */
export const audit = `
alter table decision add column written_by xid8 not null default pg_current_xact_id();
create index decision_by_writer on decision (written_by, id);

-- HMAC of the decision by the process that took it, hex. Null until that process has authenticated what the database decided;
-- written once.
alter table decision add column mac text check (mac ~ '^[0-9a-f]{64}$');
drop trigger append_only on decision;
create trigger append_only before delete or truncate on decision execute function refuse_change();
create trigger append_only_rows before update on decision for each row
when (old.mac is not null or to_jsonb(old) - 'mac' <> to_jsonb(new) - 'mac') execute function refuse_change();

-- The contents of decisions as a process that has just made them reads them: a function, so that its snapshot sees what the
-- rest of its statement wrote.
create function decisions_made(p_ids text[]) returns jsonb language sql volatile as $$
  select coalesce(jsonb_agg(jsonb_build_object('id', d.id, 'at', to_char(d.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    'account_id', d.account_id, 'key_id', d.key_id, 'operation', d.operation, 'verdict', d.verdict,
    'policy_version', d.policy_version, 'policy_hash', d.policy_hash, 'facts', d.facts, 'violations', d.violations,
    'available_units', d.available_units::text)), '[]')
  from decision d where d.id = any (p_ids) and d.mac is null
$$;

create table decision_seal (
  sequence bigint primary key check (sequence > 0),
  decision_id text collate "C" not null unique,
  previous text not null check (previous ~ '^[0-9a-f]{64}$'),
  hash text not null check (hash ~ '^[0-9a-f]{64}$'),
  receipt text not null,
  sealed_at timestamptz not null
);

create trigger append_only before update or delete or truncate on decision_seal execute function refuse_change();
`

/** Approvals: calls that wait for their owner. One is bound to exactly the call that asked, and runs at most once. */
export const approvals = `
create table approval (
  id text collate "C" primary key,
  account_id text not null references account,
  key_id text collate "C" not null,
  -- The decision that asked for it.
  decision_id text collate "C" not null unique references decision,
  operation text not null,
  -- As the caller wrote it, so that it is decoded anew when it runs.
  input text not null,
  fingerprint text not null,
  idempotency_key text,
  status text not null check (status in ('pending', 'approved', 'rejected')),
  answer jsonb,
  problem jsonb,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  decided_at timestamptz,
  check ((status = 'pending') = (decided_at is null)),
  check (answer is null or problem is null),
  check (status = 'approved' or (answer is null and problem is null))
);
create index approval_of_account on approval (account_id, id);
create index approval_unfinished on approval (id) where status = 'approved' and answer is null and problem is null;
create index approval_waiting on approval (key_id, fingerprint) where status = 'pending';

-- Whether what a decision began has not come to its end: money is held, its owner is asked, or the approved call is to run.
-- An idempotency key is kept for as long.
create function spend_is_open(p_decision text, p_at timestamptz) returns boolean language sql stable as $$
  select exists (select 1 from reservation r where r.decision_id = p_decision and r.status = 'reserved')
    or exists (select 1 from approval a where a.decision_id = p_decision
      and (a.status = 'pending' and a.expires_at > p_at
        or a.status = 'approved' and a.answer is null and a.problem is null))
$$;

-- A key that was stopped, and any key of an account that was locked, waits for nothing any more.
create function approvals_stop() returns trigger language plpgsql as $$
begin
  update approval set status = 'rejected', decided_at = now()
  where status = 'pending' and expires_at > now()
    and account_id = coalesce(to_jsonb(new) ->> 'account_id', new.id)
    and (tg_table_name = 'account' or key_id = new.id);
  return null;
end $$;
create trigger approvals_stop after update of status on account
  for each row when (new.status = 'locked' and old.status <> 'locked') execute function approvals_stop();
create trigger approvals_stop after update of status on access_key
  for each row when (new.status <> 'active' and old.status = 'active') execute function approvals_stop();
`

-- Rejects the pending approvals of a key that stops being active, and of every key of an account that is locked.
--
-- Locks: the approvals' rows.
create or replace function approvals_stop() returns trigger language plpgsql as $$
begin
  update approval set status = 'rejected', decided_at = now()
  where status = 'pending' and expires_at > now()
    and account_id = coalesce(to_jsonb(new) ->> 'account_id', new.id)
    and (tg_table_name = 'account' or key_id = new.id);
  return null;
end $$;

create or replace trigger approvals_stop after update of status on account
  for each row when (new.status = 'locked' and old.status <> 'locked') execute function approvals_stop();
create or replace trigger approvals_stop after update of status on access_key
  for each row when (new.status <> 'active' and old.status = 'active') execute function approvals_stop();

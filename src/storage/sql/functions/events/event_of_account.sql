-- Writes the event of an account that is locked or unlocked.
--
-- Locks: none.
create or replace function event_of_account() returns trigger language plpgsql as $$
begin
  perform event_write(new.id, null, case new.status when 'locked' then 'security.locked' else 'security.unlocked' end, 'account', new.id,
    jsonb_build_object('reason', new.lock_reason), coalesce(new.locked_at, clock_timestamp()));
  return null;
end $$;

create or replace trigger event_of_change after update of status on account
  for each row when (new.status <> old.status) execute function event_of_account();

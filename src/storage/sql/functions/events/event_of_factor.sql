-- Writes the event of a sign-in method or second factor that was added or removed, from its journal entry.
--
-- Locks: none.
create or replace function event_of_factor() returns trigger language plpgsql as $$
begin
  perform event_write(new.account_id, null, replace(new.action, 'factor.', 'security.factor_'), new.object_kind, new.object_id,
    jsonb_build_object('kind', new.object_kind), new.at);
  return null;
end $$;

create or replace trigger event_of_factor after insert on journal_entry
  for each row when (new.action in ('factor.added', 'factor.removed')) execute function event_of_factor();

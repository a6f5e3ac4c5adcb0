-- Writes the event of a sign-in, to the account that the person acts for.
--
-- Locks: none.
create or replace function event_of_session() returns trigger language plpgsql as $$
begin
  perform event_write(coalesce((select m.account_id from membership m where m.person_id = new.account_id), new.account_id), null, 'security.signed_in', 'session', new.id, jsonb_build_object('method', new.method), new.created_at);
  return null;
end $$;

create or replace trigger event_of_insert after insert on session
  for each row execute function event_of_session();

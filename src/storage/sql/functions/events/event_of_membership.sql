-- Writes the event of a person who joins an account, gets another role in it, or leaves it. Streams of the account wake up by it, and
-- those of the person end.
--
-- Locks: none.
create or replace function event_of_membership() returns trigger language plpgsql as $$
declare
  v_old text := case when tg_op <> 'INSERT' then old.account_id end;
  v_new text := case when tg_op <> 'DELETE' then new.account_id end;
begin
  if v_old is not null and v_old is distinct from v_new and (v_old <> old.person_id or exists (
    select from membership m where m.account_id = v_old)) then
    perform event_write(v_old, null, 'person.removed', 'person', old.person_id, jsonb_build_object('role', old.role), clock_timestamp());
  end if;
  -- Somebody's own account has nothing to tell them.
  if v_new is not null and (v_old is null or v_old <> v_new) and v_new <> new.person_id and exists (
    select from membership m where m.account_id = v_new and m.person_id <> new.person_id) then
    perform event_write(v_new, null, 'person.joined', 'person', new.person_id, jsonb_build_object('role', new.role), new.joined_at);
  elsif tg_op = 'UPDATE' and v_old = v_new and old.role <> new.role then
    perform event_write(v_new, null, 'person.role_changed', 'person', new.person_id, jsonb_build_object('role', new.role), clock_timestamp());
  end if;
  return null;
end $$;

create or replace trigger event_of_membership after insert or update or delete on membership
  for each row execute function event_of_membership();

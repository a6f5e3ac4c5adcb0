-- Writes the event of a contact that is created, changed or removed.
--
-- Locks: none.
create or replace function event_of_contact() returns trigger language plpgsql as $$
begin
  perform event_write(new.account_id, null,
    case when tg_op = 'INSERT' then 'contact.created' when new.removed_at is not null then 'contact.removed' else 'contact.updated' end,
    'contact', new.id,
    jsonb_build_object('isReaddressed', case when tg_op = 'INSERT' then true else new.readdressed_at <> old.readdressed_at end),
    new.updated_at);
  return null;
end $$;

create or replace trigger event_of_insert after insert on contact
  for each row execute function event_of_contact();
create or replace trigger event_of_change after update on contact
  for each row when (new.updated_at <> old.updated_at) execute function event_of_contact();

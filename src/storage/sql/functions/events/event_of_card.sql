-- Writes the event of a card that is issued, or whose status or controls change.
--
-- Locks: none.
create or replace function event_of_card() returns trigger language plpgsql as $$
begin
  perform event_write(new.account_id, new.key_id, case tg_op when 'INSERT' then 'card.issued' else 'card.updated' end, 'card', new.id,
    jsonb_build_object('type', new.type, 'status', new.status, 'version', new.version),
    case tg_op when 'INSERT' then new.created_at else clock_timestamp() end);
  return null;
end $$;

create or replace trigger event_of_insert after insert on card
  for each row execute function event_of_card();
create or replace trigger event_of_change after update on card
  for each row when (new.version <> old.version or new.status <> old.status) execute function event_of_card();

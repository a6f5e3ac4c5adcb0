-- Writes the event of an identity review that begins or changes its status.
--
-- Locks: none.
create or replace function event_of_kyc() returns trigger language plpgsql as $$
begin
  perform event_write(new.account_id, null, 'kyc.updated', 'kyc', new.id, jsonb_build_object('level', new.level, 'status', new.status),
    new.updated_at);
  return null;
end $$;

create or replace trigger event_of_insert after insert on kyc_application
  for each row execute function event_of_kyc();
create or replace trigger event_of_change after update of status on kyc_application
  for each row when (new.status <> old.status) execute function event_of_kyc();

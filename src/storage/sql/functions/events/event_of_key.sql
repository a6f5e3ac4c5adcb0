-- Writes the event of a key that is created, changed, paused, resumed or revoked. Its first call is no change.
--
-- Locks: none.
create or replace function event_of_key() returns trigger language plpgsql as $$
begin
  perform event_write(new.account_id, new.id,
    case when tg_op = 'INSERT' then 'key.created' when new.status = old.status then 'key.updated' when new.status = 'paused' then 'key.paused'
      when new.status = 'revoked' then 'key.revoked' else 'key.resumed' end,
    'key', new.id,
    jsonb_build_object('kind', new.kind, 'status', new.status, 'scopes', to_jsonb(new.scopes), 'policyVersion', new.policy_version),
    case tg_op when 'INSERT' then new.created_at else clock_timestamp() end);
  return null;
end $$;

create or replace trigger event_of_insert after insert on access_key
  for each row execute function event_of_key();
create or replace trigger event_of_change after update on access_key
  for each row when (new is distinct from old and new.first_used_at is not distinct from old.first_used_at) execute function event_of_key();

-- Writes the event of an approval that is requested, decided, withdrawn, or noticed to have expired.
--
-- Locks: none.
create or replace function event_of_approval() returns trigger language plpgsql as $$
declare
  v_is_expired boolean := new.status = 'pending' and new.expired_at is not null;
begin
  perform event_write(new.account_id, new.key_id,
    case when v_is_expired then 'approval.expired' when new.status = 'pending' then 'approval.requested'
      else 'approval.' || new.status end,
    'approval', new.id,
    jsonb_build_object('operation', new.operation, 'decisionId', new.decision_id, 'expiresAt', new.expires_at),
    case when v_is_expired then new.expires_at else coalesce(new.decided_at, new.created_at) end);
  return null;
end $$;

create or replace trigger event_of_insert after insert on approval
  for each row execute function event_of_approval();
create or replace trigger event_of_change after update of status, expired_at on approval
  for each row when (new.status <> old.status or new.expired_at is distinct from old.expired_at) execute function event_of_approval();

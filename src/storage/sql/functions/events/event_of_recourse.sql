-- Writes the events of a recourse: that it was opened, each step, and its end.
--
-- Locks: none.
create or replace function event_of_recourse() returns trigger language plpgsql as $$
declare
  v_type text := case when tg_op = 'INSERT' then 'opened' when new.status = old.status then 'step'
    when new.status in ('recovered', 'partly_recovered') then 'recovered' when new.status = 'expired' then 'expired' else 'refused' end;
begin
  perform event_write(new.account_id, new.key_id, 'recourse.' || v_type, 'recourse', new.id,
    jsonb_build_object('decisionId', new.decision_id, 'status', new.status, 'route', new.route, 'asset', new.asset,
      'claimedUnits', new.claimed::text, 'recoveredUnits', new.recovered::text, 'isDelivered', new.is_delivered,
      'action', new.steps -> -1 ->> 'action', 'outcome', new.steps -> -1 ->> 'outcome',
      'refundOf', jsonb_build_object('kind', new.object_kind, 'id', new.object_id)),
    new.updated_at);
  return null;
end $$;

create or replace trigger event_of_insert after insert on recourse
  for each row execute function event_of_recourse();
create or replace trigger event_of_change after update on recourse
  for each row when (old.status <> new.status or old.steps <> new.steps) execute function event_of_recourse();

-- Writes the event of a purchase whose outcome is certain: delivered, paid without a delivery, or never paid.
--
-- Locks: none.
create or replace function event_of_purchase() returns trigger language plpgsql as $$
declare
  v_type text := case when new.delivered_at is not null then 'purchase.delivered' when new.state = 'failed' then 'purchase.failed'
    else 'purchase.undelivered' end;
begin
  perform event_write(new.account_id, new.key_id, v_type, 'purchase', new.id,
    jsonb_build_object('decisionId', new.decision_id, 'origin', new.origin, 'asset', new.asset, 'units', coalesce(new.charged, new.units)::text,
      'isPaid', new.state = 'settled', 'transactionHash', new.transaction_hash,
      'reason', case when v_type <> 'purchase.delivered' then new.failure_code end),
    new.updated_at);
  return null;
end $$;

-- Outcomes: 1 delivered, 2 failed, 3 undelivered; 0: open.
create or replace trigger event_of_change after update on purchase
  for each row when (
    new.state in ('settled', 'failed') and (new.delivered_at is not null or new.state = 'failed' or new.failure_code is not null)
    and (case when new.delivered_at is not null then 1 when new.state = 'failed' then 2 else 3 end) <>
      (case when old.state not in ('settled', 'failed') then 0 when old.delivered_at is not null then 1 when old.state = 'failed' then 2
        when old.failure_code is not null then 3 else 0 end))
  execute function event_of_purchase();

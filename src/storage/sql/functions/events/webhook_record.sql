-- Records attempts at deliveries of one endpoint, and says when the next one is due. The first success after failures ends every
-- pause. An endpoint without a success since p_gives_up is disabled, with an event, and its deliveries fail.
--
-- Arguments
--   p_results: objects with "id" of the delivery, "is_delivered", "attempt" to keep, and "next" attempt; none: only what is due is read
--   p_gives_up: a delivery that is older, and fails again, has failed for good
--   p_paused: with failures only, the endpoint is tried again then; null: as its deliveries are due
--   p_until: the claim is kept until then
-- Returns the endpoint's status; given_up if this call disabled it; null if it is gone.
-- Locks: the endpoint's row, before its deliveries are read, so that the read includes those of a publisher that had it.
create or replace function webhook_record(
  p_endpoint text, p_results jsonb, p_at timestamptz, p_gives_up timestamptz, p_paused timestamptz, p_until timestamptz
) returns text language plpgsql as $$
declare
  e webhook_endpoint;
  v_tried int := jsonb_array_length(p_results);
  v_is_reached boolean;
begin
  select * into e from webhook_endpoint where id = p_endpoint for update;
  if not found then
    return null;
  end if;
  select coalesce(bool_or(r.is_delivered), false) into v_is_reached from jsonb_to_recordset(p_results) as r (is_delivered boolean);
  update webhook_delivery d
  set status = case when r.is_delivered then 'delivered' when d.created_at <= p_gives_up then 'failed' else 'pending' end,
    attempts = (case when jsonb_array_length(d.attempts) >= 20 then d.attempts - 0 else d.attempts end) || r.attempt,
    tries = d.tries + 1,
    next_attempt_at = case when not r.is_delivered and d.created_at > p_gives_up then r.next end
  from jsonb_to_recordset(p_results) as r (id text, is_delivered boolean, attempt jsonb, next timestamptz)
  where d.id = r.id and d.status = 'pending';

  if v_tried > 0 and not v_is_reached and e.status = 'active' and e.failing_since <= p_gives_up then
    update webhook_delivery set status = 'failed', next_attempt_at = null where endpoint_id = p_endpoint and status = 'pending';
    update webhook_endpoint set status = 'disabled', failures = e.failures + v_tried, paused_until = null, due_at = null, busy_until = p_at
    where id = p_endpoint;
    perform event_write(e.account_id, null, 'webhook.disabled', 'webhook_endpoint', e.id,
      jsonb_build_object('failingSince', e.failing_since), p_at);
    return 'given_up';
  end if;

  if v_is_reached and e.paused_until is not null then
    update webhook_delivery set next_attempt_at = p_at
    where endpoint_id = p_endpoint and status = 'pending' and next_attempt_at > p_at;
  end if;
  update webhook_endpoint
  set failures = case when v_is_reached then 0 else e.failures + v_tried end,
    failing_since = case when v_is_reached then null when v_tried > 0 then coalesce(e.failing_since, p_at) else e.failing_since end,
    paused_until = case when v_is_reached then null when v_tried > 0 then p_paused else e.paused_until end,
    due_at = case when not v_is_reached and v_tried > 0 and p_paused is not null then p_paused
      else (select min(d.next_attempt_at) from webhook_delivery d where d.endpoint_id = p_endpoint and d.status = 'pending') end,
    busy_until = p_until
  where id = p_endpoint;
  return e.status;
end $$;

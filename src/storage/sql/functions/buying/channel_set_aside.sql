-- Sets aside a purchase whose voucher its seller refused at the first look, because it wants other terms than it had been delivering
-- for: the voucher is never presented again, and the call no longer leads to this purchase, so that it can be decided anew. Its money
-- stays held until a higher voucher is booked, or its channel ends: the seller may still claim it.
--
-- Arguments: p_principal, p_key: the call's idempotency; null: it has none.
-- Returns false when the purchase has ended, or was stopped.
-- Locks: the purchase; the pair.
create or replace function channel_set_aside(p_purchase text, p_principal text, p_key text, p_at timestamptz) returns boolean
language plpgsql as $$
#variable_conflict use_column
declare
  v_decision text;
begin
  update purchase set is_canceled = true, failure_code = 'terms_not_payable', attempts = attempts + 1, updated_at = p_at,
    failure = 'the seller asked for other terms once it had the payment'
  where id = p_purchase and state = 'signed' and delivered_at is null and not is_canceled
  returning decision_id into v_decision;
  if not found then
    return false;
  end if;
  if p_key is not null then
    perform pg_advisory_xact_lock(hashtext(p_principal), hashtext(p_key));
    delete from idempotency i where i.principal = p_principal and i.key = p_key and i.decision_id = v_decision;
  end if;
  return true;
end $$;

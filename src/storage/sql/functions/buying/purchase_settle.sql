-- Books a payment that the chain shows, once.
--
-- Verdicts: those of spend_resolve; already_settled also for a purchase that is not signed.
-- Locks: the purchase, then those of spend_resolve.
create or replace function purchase_settle(
  p_id text, p_transaction text, p_destination text, p_at timestamptz, out verdict text
) language plpgsql as $$
#variable_conflict use_column
declare
  v_decision text;
begin
  update purchase p set state = 'settled', transaction_hash = p_transaction, updated_at = p_at
  where p.id = p_id and p.state = 'signed' returning p.decision_id into v_decision;
  if not found then
    verdict := 'already_settled';
    return;
  end if;
  select r.verdict into verdict from spend_resolve(v_decision, 'settled', p_destination, p_at) r;
end $$;

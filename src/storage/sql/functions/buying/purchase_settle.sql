-- Books a payment that the chain shows, once. A payment of less than was reserved gives the rest back: to the purse, and to the budget.
--
-- Arguments: p_units: what was paid.
-- Verdicts: those of spend_resolve; already_settled also for a purchase that is not signed; too_much (more than is held).
-- Locks: the purchase; the reservation; the account when less was paid; then those of spend_take and spend_resolve.
create or replace function purchase_settle(
  p_id text, p_transaction text, p_units bigint, p_destination text, p_at timestamptz, out verdict text
) language plpgsql as $$
#variable_conflict use_column
declare
  p purchase;
begin
  update purchase u set state = 'settled', transaction_hash = p_transaction, charged = p_units, updated_at = p_at,
    escrow_refundable = case when u.scheme = 'auth-capture' then p_units end, escrow_look_at = null
  where u.id = p_id and u.state = 'signed' returning * into p;
  if not found then
    verdict := 'already_settled';
    return;
  end if;
  if p_units = p.units then
    select r.verdict into verdict from spend_resolve(p.decision_id, 'settled', p_destination, p_at) r;
    return;
  end if;
  perform 1 from reservation r where r.decision_id = p.decision_id for update;
  -- Before the balances, as everywhere.
  perform pg_advisory_xact_lock(hashtextextended(p.account_id, 0));
  select t.verdict into verdict from spend_take(p.decision_id, p.decision_id || ':settle', p_units, p_destination, p_at) t;
  if verdict <> 'taken' then
    return;
  end if;
  perform spend_resolve(p.decision_id, 'released', null, p_at);
  verdict := 'settled';
end $$;

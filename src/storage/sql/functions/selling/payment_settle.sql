-- Settles a payment, meters it and books it. Returns whether this very call did: later calls change nothing. What a voucher pays is owed by
-- its channel until the channels pay out. What pays a request is its account's, and booked as a deposit there.
--
-- Locks: the payment's row. System accounts have no balance rows.
create or replace function payment_settle(p_id text, p_transaction text, p_receipt text, p_at timestamptz)
returns boolean language plpgsql as $$
declare
  v payment;
begin
  update payment set state = 'settled', transaction_hash = coalesce(p_transaction, transaction_hash),
    receipt = p_receipt, failure = null, updated_at = p_at
  where id = p_id and state <> 'settled' returning * into v;
  if not found then
    return false;
  end if;
  if v.operation = 'requests.pay' then
    return true;
  end if;
  insert into metering (payment_id, operation, payer, asset, units, at)
  values (v.id, v.operation, v.payer, v.asset, v.units, p_at);
  perform ledger_post(v.id, 'x402_payment', v.id, p_at,
    array[case v.scheme when 'batch-settlement' then 'receivable:channels' else 'external:' || v.chain end],
    array['revenue:' || v.operation], array[v.asset], array[v.units]);
  return true;
end $$;

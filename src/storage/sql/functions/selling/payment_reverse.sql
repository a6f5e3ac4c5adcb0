-- Reverses the booking of a payment whose block the chain has lost. The purchase stays delivered; the loss is in the books.
-- Returns whether this very call did.
--
-- Locks: the payment's row. System accounts have no balance rows.
create or replace function payment_reverse(p_id text, p_at timestamptz) returns boolean language plpgsql as $$
declare
  v payment;
begin
  update payment set reversed_at = p_at where id = p_id and state = 'settled' and reversed_at is null returning * into v;
  if not found then
    return false;
  end if;
  if v.operation = 'requests.pay' then
    return true;
  end if;
  perform ledger_post(v.id || ':reversed', 'x402_reversal', v.id, p_at, array['revenue:' || v.operation],
    array['external:' || v.chain], array[v.asset], array[v.units]);
  return true;
end $$;

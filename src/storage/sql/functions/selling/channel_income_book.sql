-- Books what a chain's channels have paid out to the seller's address, as the contract counts it: the part above what is booked. Returns that
-- part, 0 for a count that is booked already.
--
-- Locks: the row of the chain, token and address. System accounts have no balance rows.
create or replace function channel_income_book(
  p_chain text, p_token text, p_pay_to text, p_asset text, p_settled bigint, p_at timestamptz
) returns bigint language plpgsql as $$
declare
  v_booked bigint;
begin
  insert into channel_income (chain, token, pay_to, units) values (p_chain, p_token, p_pay_to, 0) on conflict do nothing;
  select units into v_booked from channel_income
  where chain = p_chain and token = p_token and pay_to = p_pay_to for update;
  if p_settled <= v_booked then
    return 0;
  end if;
  update channel_income set units = p_settled where chain = p_chain and token = p_token and pay_to = p_pay_to;
  perform ledger_post(format('channels:%s:%s:%s:%s', p_chain, p_token, p_pay_to, p_settled), 'x402_channels', p_chain, p_at,
    array['external:' || p_chain], array['receivable:channels'], array[p_asset], array[p_settled - v_booked]);
  return p_settled - v_booked;
end $$;

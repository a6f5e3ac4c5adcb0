-- Books what a chain's channels have paid out to the seller's address, as the contract counts it: the difference to what is booked. A count
-- that has fallen, because blocks were replaced, is booked back. Returns the difference.
--
-- Arguments: p_identity: of the chain, whose name is p_chain.
-- Locks: the row of the identity, token and address. System accounts have no balance rows.
create or replace function channel_income_book(
  p_identity text, p_chain text, p_token text, p_pay_to text, p_asset text, p_settled bigint, p_at timestamptz
) returns bigint language plpgsql as $$
declare
  v channel_income;
  v_change bigint;
  v_chain text := 'external:' || p_chain;
  v_owed text := 'receivable:channels';
begin
  insert into channel_income (identity, token, pay_to, units) values (p_identity, p_token, p_pay_to, 0) on conflict do nothing;
  select * into v from channel_income
  where identity = p_identity and token = p_token and pay_to = p_pay_to for update;
  v_change := p_settled - v.units;
  if v_change = 0 then
    return 0;
  end if;
  update channel_income set units = p_settled, entries = v.entries + 1
  where identity = p_identity and token = p_token and pay_to = p_pay_to;
  perform ledger_post(format('channels:%s:%s:%s:%s', p_identity, p_token, p_pay_to, v.entries + 1), 'x402_channels', p_chain, p_at,
    array[case when v_change > 0 then v_chain else v_owed end], array[case when v_change > 0 then v_owed else v_chain end],
    array[p_asset], array[abs(v_change)]);
  return v_change;
end $$;

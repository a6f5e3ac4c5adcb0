-- Moves the money of a purchase, which was held in the wallet, to the purse that now has it, once: what the purchase needs stays
-- held, the rest of the chunk can be spent from the purse.
--
-- Verdicts: settled; already_settled; not_reserved; already_released.
-- Locks: the reservation, then balances: the wallet's before the purse's.
create or replace function purse_fill(p_decision text, p_purse text, p_at timestamptz, out verdict text) language plpgsql as $$
#variable_conflict use_column
declare
  r reservation;
  v_needed bigint;
  v_source text;
  v_held text;
begin
  select * into r from reservation where decision_id = p_decision for update;
  v_source := r.account_id || ':purse.' || p_purse || ':available';
  v_held := r.account_id || ':purse.' || p_purse || ':held';
  if r.decision_id is null then
    verdict := 'not_reserved';
    return;
  elsif r.source = v_source then
    verdict := 'already_settled';
    return;
  elsif r.status <> 'reserved' then
    verdict := 'already_' || r.status;
    return;
  end if;
  verdict := 'settled';
  select p.units into strict v_needed from purchase p where p.decision_id = p_decision;
  update balance set units = units - r.units where account = r.held and asset = r.asset;
  if r.units > v_needed then
    insert into balance as b (account, asset, units) values (v_source, r.asset, r.units - v_needed)
    on conflict (account, asset) do update set units = b.units + excluded.units;
  end if;
  insert into balance as b (account, asset, units) values (v_held, r.asset, v_needed)
  on conflict (account, asset) do update set units = b.units + excluded.units;
  insert into ledger_transaction (id, kind, reference, at) values (p_decision || ':fill', 'purse_fill', p_decision, p_at);
  insert into posting (transaction_id, ordinal, source, destination, asset, units)
  values (p_decision || ':fill', 1, r.held, v_held, r.asset, v_needed);
  if r.units > v_needed then
    insert into posting (transaction_id, ordinal, source, destination, asset, units)
    values (p_decision || ':fill', 2, r.held, v_source, r.asset, r.units - v_needed);
  end if;
  update reservation set source = v_source, held = v_held, units = v_needed where decision_id = p_decision;
end $$;

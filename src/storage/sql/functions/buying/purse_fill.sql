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
  v_postings int;
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
  v_postings := case when r.units > v_needed then 2 else 1 end;
  perform ledger_book(array_fill(p_decision || ':fill', array[v_postings]), (array[1, 2])[1:v_postings], array_fill('purse_fill'::text, array[v_postings]),
    array_fill(p_decision, array[v_postings]), array_fill(p_at, array[v_postings]), (array[r.held, r.held])[1:v_postings],
    (array[v_held, v_source])[1:v_postings], (array[r.asset, r.asset])[1:v_postings], (array[v_needed, r.units - v_needed])[1:v_postings]);
  update reservation set source = v_source, held = v_held, units = v_needed where decision_id = p_decision;
end $$;

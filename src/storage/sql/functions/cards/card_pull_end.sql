-- Ends a pull as the chain decided, once. Where the money has reached the escrow, it is booked there: what approved purchases still
-- hold of it stays held, the rest is available. Otherwise both stay in the wallet.
--
-- Verdicts: settled; released; not_reserved; already_settled; already_released.
-- Locks: the reservation; the account; then the balances that change, by account and asset.
create or replace function card_pull_end(
  p_decision text, p_is_confirmed boolean, p_at timestamptz, out verdict text
) language plpgsql as $$
#variable_conflict use_column
declare
  r reservation;
  p card_pull;
  v_to text;
  v_kept bigint;
  v_posted text;
begin
  select * into r from reservation where decision_id = p_decision for update;
  if not found then
    verdict := 'not_reserved';
    return;
  elsif r.status <> 'reserved' then
    verdict := 'already_' || r.status;
    return;
  end if;
  perform pg_advisory_xact_lock(hashtextextended(r.account_id, 0));
  verdict := case when p_is_confirmed then 'settled' else 'released' end;
  select * into strict p from card_pull c where c.decision_id = p_decision;
  v_to := case when p_is_confirmed then 'escrow.' || p.place else p.place end;
  select coalesce(sum(h.units), 0)::bigint into v_kept
  from card_authorization a join card_hold h on h.authorization_id = a.id
  where a.account_id = r.account_id and h.place = 'pull.' || p_decision;
  select l.verdict into v_posted from (
    select array_agg(m.destination order by m.destination) as destinations, array_agg(m.units order by m.destination) as units
    from (values
      (r.account_id || ':' || v_to || ':held', case when p_is_confirmed then v_kept else 0 end),
      (r.account_id || ':' || v_to || ':available', r.units - v_kept)
    ) as m (destination, units) where m.units > 0
  ) m, ledger_post('pull:' || p_decision || ':' || verdict, 'card_pull', p_decision, p_at,
    array_fill(r.held, array[cardinality(m.units)]), m.destinations, array_fill(r.asset, array[cardinality(m.units)]), m.units) l
  where m.units is not null;
  if v_posted <> 'posted' then
    raise exception 'a pull was not posted: %', v_posted;
  end if;
  update card_hold h set place = v_to from card_authorization a
  where a.id = h.authorization_id and a.account_id = r.account_id and h.place = 'pull.' || p_decision;
  update reservation set status = verdict, resolved_at = p_at, taken = case when p_is_confirmed then r.units else 0 end
  where decision_id = p_decision;
  update card_pull c set status = verdict, ended_at = p_at where c.decision_id = p_decision;
end $$;

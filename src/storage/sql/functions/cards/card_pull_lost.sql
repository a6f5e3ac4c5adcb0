-- Books a pull back that the chain has lost for good: the money never left the wallet. What approved purchases hold of it is held
-- there again, and is pulled anew; of a hold that is larger, the part that the pull had brought. What has left the escrow since comes
-- from outside: the payment that took it has no money on the chain, and is refused.
--
-- Arguments: p_transfer is the id of the pull's transfer.
-- Locks: the account; then all balances of the account, by account and asset; then the pull's row.
create or replace function card_pull_lost(p_decision text, p_transfer text, p_at timestamptz) returns void language plpgsql as $$
declare
  p card_pull;
  h record;
  v_wallet text;
  v_escrow text;
  v_left bigint;
  v_free bigint;
  v_held bigint := 0;
  v_worth bigint;
  v_posted text;
begin
  select * into strict p from card_pull c where c.decision_id = p_decision;
  perform pg_advisory_xact_lock(hashtextextended(p.account_id, 0));
  perform 1 from balance b where b.account > p.account_id || ':' and b.account < p.account_id || ';'
  order by b.account, b.asset for update;
  v_wallet := p.account_id || ':' || p.place;
  v_escrow := p.account_id || ':escrow.' || p.place;
  select least(coalesce(max(b.units), 0), p.units) into v_free from balance b
  where b.account = v_escrow || ':available' and b.asset = p.asset;
  v_left := p.units - v_free;
  for h in
    select c.authorization_id, c.ordinal, c.units, c.micros from card_authorization a join card_hold c on c.authorization_id = a.id
    where a.account_id = p.account_id and a.status = 'pending' and c.place = 'escrow.' || p.place and c.asset = p.asset and c.units > 0
    order by c.authorization_id desc, c.ordinal
  loop
    exit when v_left = 0;
    if h.units > v_left then
      v_worth := trunc(h.micros::numeric * v_left / h.units);
      update card_hold c set units = c.units - v_left, micros = c.micros - v_worth
      where c.authorization_id = h.authorization_id and c.ordinal = h.ordinal;
      insert into card_hold (authorization_id, ordinal, place, asset, units, micros)
      select h.authorization_id, max(c.ordinal) + 1, p.place, p.asset, v_left, v_worth from card_hold c
      where c.authorization_id = h.authorization_id;
      v_held := v_held + v_left;
      v_left := 0;
    else
      update card_hold c set place = p.place where c.authorization_id = h.authorization_id and c.ordinal = h.ordinal;
      v_held := v_held + h.units;
      v_left := v_left - h.units;
    end if;
  end loop;
  select l.verdict into v_posted from (
    select array_agg(m.source order by m.ordinal) as sources, array_agg(m.destination order by m.ordinal) as destinations,
      array_agg(m.units order by m.ordinal) as units
    from (values
      (1, v_escrow || ':available', v_wallet || ':available', v_free),
      (2, v_escrow || ':held', v_wallet || ':held', v_held),
      (3, 'external:' || p.place, v_wallet || ':available', v_left)
    ) as m (ordinal, source, destination, units) where m.units > 0
  ) m, ledger_post('reversal:' || p_transfer, 'transfer_reversal', p_transfer, p_at, m.sources, m.destinations,
    array_fill(p.asset, array[cardinality(m.units)]), m.units) l;
  if v_posted <> 'posted' then
    raise exception 'a lost pull was not posted: %', v_posted;
  end if;
  update card_pull c set status = 'released', ended_at = p_at where c.decision_id = p_decision;
end $$;

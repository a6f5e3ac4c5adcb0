-- Books a pull back that the chain has lost for good: the money never left the wallet. What approved purchases hold of it is held
-- there again, and is pulled anew; of a hold that is larger, the part that the pull had brought. A settlement that the chain refuses
-- is freed, because the money that it holds is not in the escrow: what it pays stays owed.
--
-- What has left the escrow since, or is on its way, had no money on the chain either. It is reversed or refused first, or the books
-- would have its money twice.
--
-- Arguments: p_transfer is the id of the pull's transfer. p_is_late: that is no longer waited for, and what is missing comes from
--   outside.
-- Verdicts: booked; busy (nothing has changed).
-- Locks: the account; then all balances of the account, by account and asset; then the rows of its settlements and of the pull.
create or replace function card_pull_lost(
  p_decision text, p_transfer text, p_at timestamptz, p_is_late boolean default true, out verdict text
) language plpgsql as $$
#variable_conflict use_column
declare
  p card_pull;
  h record;
  s card_settlement;
  v_wallet text;
  v_escrow text;
  v_left bigint;
  v_free bigint;
  v_held bigint := 0;
  v_freed bigint := 0;
  v_surplus bigint := 0;
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
  if not p_is_late and v_left > (
    select coalesce(sum(c.units), 0) from card_authorization a join card_hold c on c.authorization_id = a.id
    where a.account_id = p.account_id and a.status = 'pending' and c.place = 'escrow.' || p.place and c.asset = p.asset
  ) + (
    select coalesce(sum(f.units), 0) from card_settlement f
    where f.account_id = p.account_id and f.status = 'refused' and f.place = 'escrow.' || p.place and f.asset = p.asset
  ) then
    verdict := 'busy';
    return;
  end if;
  verdict := 'booked';
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
  for s in
    select * from card_settlement f
    where f.account_id = p.account_id and f.status = 'refused' and f.place = 'escrow.' || p.place and f.asset = p.asset and f.units > 0
    order by f.id desc for update
  loop
    exit when v_left = 0;
    -- One that was reversed, and not tried again since, is no debt yet.
    if s.owed_units > 0 and not exists (
      select from debt d where d.account_id = s.account_id and d.kind = 'settlement' and d.reference = s.id and d.owed > 0
    ) then
      perform debt_book('settlement:' || s.decision_id, s.account_id, 'settlement', s.id, s.card_id, s.owed_asset, s.owed_units,
        s.paid_to, p_at);
    end if;
    update card_settlement f set status = 'freed', units = 0, next_try_at = null, ended_at = p_at where f.id = s.id;
    v_freed := v_freed + least(s.units, v_left);
    v_surplus := v_surplus + greatest(s.units - v_left, 0);
    v_left := greatest(v_left - s.units, 0);
  end loop;
  select l.verdict into v_posted from (
    select array_agg(m.source order by m.ordinal) as sources, array_agg(m.destination order by m.ordinal) as destinations,
      array_agg(m.units order by m.ordinal) as units
    from (values
      (1, v_escrow || ':available', v_wallet || ':available', v_free),
      (2, v_escrow || ':held', v_wallet || ':held', v_held),
      (3, v_escrow || ':held', v_wallet || ':available', v_freed),
      (4, v_escrow || ':held', v_escrow || ':available', v_surplus),
      (5, 'external:' || p.place, v_wallet || ':available', v_left)
    ) as m (ordinal, source, destination, units) where m.units > 0
  ) m, ledger_post('reversal:' || p_transfer, 'transfer_reversal', p_transfer, p_at, m.sources, m.destinations,
    array_fill(p.asset, array[cardinality(m.units)]), m.units) l;
  if v_posted <> 'posted' then
    raise exception 'a lost pull was not posted: %', v_posted;
  end if;
  update card_pull c set status = 'released', ended_at = p_at where c.decision_id = p_decision;
end $$;

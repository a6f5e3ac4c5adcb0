-- Books a purchase that has failed, or was reversed, and that the chain shows to be paid after all: a reorganization took the
-- cancellation away, or brought the payment. It is paid from what is available in its purse, and then from the wallet, to which the
-- purse's money may have returned. All of it is booked, or nothing.
--
-- Arguments: p_units: what the chain shows to be paid; p_is_late: what the purse holds for others is no longer waited for.
-- Verdicts: restored; short (there is not enough, or the purse still pays with it); none (it has not failed).
-- Locks: the purchase; those of spend_restore; the balances of the purse and the wallet, by account.
create or replace function purchase_restore(
  p_id text, p_transaction text, p_units bigint, p_is_late boolean, p_at timestamptz, out verdict text
) language plpgsql as $$
#variable_conflict use_column
declare
  p purchase;
  v_purse text;
  v_wallet text;
  v_free bigint;
  v_held bigint;
  v_spare bigint;
  v_times bigint;
begin
  select * into p from purchase where id = p_id and state = 'failed' for update;
  if not found then
    verdict := 'none';
    return;
  end if;
  perform 1 from reservation where decision_id = p.decision_id for update;
  perform pg_advisory_xact_lock(hashtextextended(p.account_id, 0));
  v_purse := p.account_id || ':purse.' || p.purse_id;
  v_wallet := p.account_id || ':' || p.chain || ':available';
  perform 1 from balance b
  where b.account in (v_purse || ':available', v_purse || ':held', v_wallet) and b.asset = p.asset
  order by b.account, b.asset for update;
  select coalesce(sum(b.units) filter (where b.account = v_purse || ':available'), 0),
    coalesce(sum(b.units) filter (where b.account = v_purse || ':held'), 0),
    coalesce(sum(b.units) filter (where b.account = v_wallet), 0)
  into v_free, v_held, v_spare
  from balance b where b.account in (v_purse || ':available', v_purse || ':held', v_wallet) and b.asset = p.asset;
  v_free := least(v_free, p_units);
  if v_free < p_units and (v_held > 0 and not p_is_late or v_free + v_spare < p_units) then
    verdict := 'short';
    return;
  end if;
  verdict := 'restored';
  perform spend_restore(p.decision_id, p_units, p_at);
  -- A chain may bring and take a payment several times.
  select count(*) into v_times from ledger_transaction t
  where t.id >= 'restored:' || p_id || ':' and t.id < 'restored:' || p_id || ';';
  perform ledger_book(m.ids, m.ordinals, m.kinds, m.references_, m.ats, m.sources, m.destinations, m.assets, m.units)
  from (
    select array_agg('restored:' || p_id || ':' || v_times) as ids, array_agg(s.ordinal order by s.ordinal) as ordinals,
      array_agg('purchase_restored'::text) as kinds, array_agg(p_id) as references_, array_agg(p_at) as ats,
      array_agg(s.source order by s.ordinal) as sources, array_agg('external:' || p.chain) as destinations,
      array_agg(p.asset) as assets, array_agg(s.units order by s.ordinal) as units
    from (
      -- The first posting is the transaction's row, whoever pays.
      select row_number() over (order by v.place)::int as ordinal, v.source, v.units
      from (values (1, v_purse || ':available', v_free), (2, v_wallet, p_units - v_free)) as v (place, source, units)
      where v.units > 0
    ) s
  ) m;
  update purchase set state = 'settled', transaction_hash = p_transaction, charged = p_units, reversed_at = null, updated_at = p_at,
    failure_code = case when p.reversed_at is null then p.failure_code end,
    failure = case when p.reversed_at is null then 'the seller took the payment after the chain had shown that it could not' end
  where id = p_id;
end $$;

-- Begins to give money of one asset, which no purchase holds, back from an account's escrow to its wallet. None while a pull is under
-- way or has just ended, because a purchase waits for it, and none while the account owes a debt, which it pays.
--
-- Arguments: p_before is the time after which no pull may have ended.
-- Returns how much is given back; null: nothing.
-- Locks: the account; then the balances of the escrow, by account.
create or replace function card_return_begin(
  p_decision text, p_account text, p_place text, p_asset text, p_before timestamptz, p_at timestamptz
) returns bigint language plpgsql as $$
declare
  v_units bigint;
  v_posted text;
begin
  perform pg_advisory_xact_lock(hashtextextended(p_account, 0));
  select b.units into v_units from balance b
  where b.account = p_account || ':escrow.' || p_place || ':available' and b.asset = p_asset for update;
  if coalesce(v_units, 0) = 0
    or exists (select from card_pull p where p.account_id = p_account and (p.ended_at is null or p.ended_at > p_before))
    or exists (select from debt d where d.account_id = p_account and d.owed > 0)
  then
    return null;
  end if;
  insert into decision (id, at, account_id, key_id, policy_version, policy_hash, operation, facts, verdict, violations, available_units)
  values (p_decision, p_at, p_account, null, null, null, 'cards.return', jsonb_build_object('category', 'card', 'asset', p_asset,
    'units', v_units::text, 'chain', p_place), 'allow', '[]', null);
  insert into reservation (decision_id, account_id, key_id, day, usd_micros, source, held, asset, units, reserved_at)
  values (p_decision, p_account, null, (p_at at time zone 'UTC')::date, 0, p_account || ':escrow.' || p_place || ':available',
    p_account || ':escrow.' || p_place || ':held', p_asset, v_units, p_at);
  select l.verdict into v_posted from ledger_post('return:' || p_decision, 'card_return', p_decision, p_at,
    array[p_account || ':escrow.' || p_place || ':available'], array[p_account || ':escrow.' || p_place || ':held'],
    array[p_asset], array[v_units]) l;
  if v_posted <> 'posted' then
    raise exception 'money of an escrow was not held: %', v_posted;
  end if;
  return v_units;
end $$;

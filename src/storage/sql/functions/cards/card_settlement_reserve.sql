-- Reserves a settlement's money, which is held already, for one try: from held to held, so that a release leaves it there.
--
-- Locks: none but new rows. The caller holds the account.
create or replace function card_settlement_reserve(p_decision text, s card_settlement, p_at timestamptz) returns void language plpgsql as $$
begin
  insert into decision (id, at, account_id, key_id, policy_version, policy_hash, operation, facts, verdict, violations, available_units)
  select p_decision, p_at, s.account_id, null, null, null, 'cards.settle', jsonb_build_object('category', 'card',
    'asset', s.asset, 'units', s.units::text, 'chain', s.place, 'settlement', s.id, 'authorization', s.authorization_id,
    'authorizedBy', (select a.decision_id from card_authorization a where a.id = s.authorization_id)), 'allow', '[]', null;
  insert into reservation (decision_id, account_id, key_id, day, usd_micros, source, held, asset, units, reserved_at)
  values (p_decision, s.account_id, null, (p_at at time zone 'UTC')::date, 0, s.account_id || ':' || s.place || ':held',
    s.account_id || ':' || s.place || ':held', s.asset, s.units, p_at);
end $$;

-- Begins to settle stablecoins that are held.
--
-- Arguments: p_id is also the first try's decision. p_authorization is null for the payment of a debt. p_owed_asset, p_owed_units
--   and p_paid_to describe the debt that it becomes when the chain keeps refusing it.
-- Locks: none but new rows. The caller holds the account.
create or replace function card_settle(
  p_id text, p_account text, p_authorization text, p_card text, p_place text, p_asset text, p_units bigint,
  p_owed_asset text, p_owed_units bigint, p_paid_to text, p_at timestamptz
) returns void language plpgsql as $$
declare
  s card_settlement;
begin
  s.id := p_id;
  s.account_id := p_account;
  s.authorization_id := p_authorization;
  s.place := p_place;
  s.asset := p_asset;
  s.units := p_units;
  perform card_settlement_reserve(p_id, s, p_at);
  insert into card_settlement (id, account_id, authorization_id, card_id, place, asset, units, owed_asset, owed_units, paid_to,
    decision_id, created_at)
  values (p_id, p_account, p_authorization, p_card, p_place, p_asset, p_units, p_owed_asset, p_owed_units, p_paid_to, p_id, p_at);
end $$;

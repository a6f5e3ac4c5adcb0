-- Adds to what an authorization holds, in one row for each place and asset.
--
-- Locks: none. The caller holds the account.
create or replace function card_hold_add(
  p_authorization text, p_place text, p_asset text, p_units bigint, p_micros bigint
) returns void language plpgsql as $$
begin
  update card_hold set units = units + p_units, micros = micros + p_micros
  where authorization_id = p_authorization and ordinal = (
    select min(o.ordinal) from card_hold o where o.authorization_id = p_authorization and o.place = p_place and o.asset = p_asset);
  if not found then
    insert into card_hold (authorization_id, ordinal, place, asset, units, micros)
    select p_authorization, coalesce(max(o.ordinal), 0) + 1, p_place, p_asset, p_units, p_micros
    from card_hold o where o.authorization_id = p_authorization;
  end if;
end $$;

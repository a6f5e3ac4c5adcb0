-- Writes the event of a wallet of which the chain holds less than the books, when that is found and each time it changes.
--
-- Locks: none.
create or replace function event_of_shortfall() returns trigger language plpgsql as $$
begin
  perform event_write(new.account_id, null, 'wallet.shortfall', 'wallet', new.account_id,
    jsonb_build_object('asset', new.token, 'chain', new.chain, 'frozenUnits', new.frozen::text,
      'uncoveredUnits', new.uncovered::text),
    new.updated_at);
  return null;
end $$;

create or replace trigger event_of_insert after insert on wallet_shortfall
  for each row when (new.frozen > 0 or new.uncovered > 0) execute function event_of_shortfall();
create or replace trigger event_of_change after update of frozen, uncovered on wallet_shortfall
  for each row when (new.frozen <> old.frozen or new.uncovered <> old.uncovered) execute function event_of_shortfall();

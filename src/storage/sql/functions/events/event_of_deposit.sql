-- Writes the event of a booked deposit that the bank takes back.
--
-- Locks: none.
create or replace function event_of_deposit() returns trigger language plpgsql as $$
begin
  perform event_write(new.account_id, null, 'deposit.reversed', 'deposit', new.id,
    jsonb_build_object('asset', new.asset, 'units', new.units::text, 'place', new.place, 'transactionHash', null),
    new.updated_at);
  return null;
end $$;

create or replace trigger event_of_reversal after update of rank on deposit
  for each row when (old.rank <= 5 and new.rank > 5 and new.units is not null) execute function event_of_deposit();

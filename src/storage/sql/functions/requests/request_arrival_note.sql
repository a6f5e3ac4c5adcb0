-- Notes money that arrives in an account that has asked for some, so that it can be matched to a request. It decides nothing.
--
-- Locks: none but the new row.
create or replace function request_arrival_note() returns trigger language plpgsql as $$
declare
  l ledger_transaction;
  v_account text := split_part(new.destination, ':', 1);
begin
  if split_part(new.destination, ':', 3) <> 'available'
    or not exists (select from payment_request r where r.account_id = v_account)
  then
    return null;
  end if;
  select * into l from ledger_transaction where id = new.transaction_id;
  if l.kind not in ('deposit', 'settle') then
    return null;
  end if;
  insert into request_arrival (entry_id, account_id, asset, units, place, transaction_hash, at)
  values (
    coalesce(
      (select t.id from transfer t where l.kind = 'settle' and t.decision_id = l.reference and t.funding_id is null),
      (select r.id from relay r where l.kind = 'settle' and r.decision_id = l.reference),
      (select d.id from deposit d where d.id = l.reference),
      new.transaction_id || '.' || new.ordinal),
    v_account, new.asset, new.units, split_part(new.destination, ':', 2),
    case when left(l.reference, 2) = '0x' then lower(l.reference) end, l.at)
  on conflict do nothing;
  return null;
end $$;

create or replace trigger request_arrival after insert on posting
  for each row when (left(new.destination, 5) = 'acct_' and split_part(new.source, ':', 1) <> split_part(new.destination, ':', 1))
  execute function request_arrival_note();

-- Writes the event of money that arrived in an account from elsewhere: a deposit at the bank or on the chain, or another wallet's
-- transfer; and of such a transfer that a reorganization undid. A posting within one account is none.
--
-- Locks: none.
create or replace function event_of_posting() returns trigger language plpgsql as $$
declare
  l ledger_transaction;
  v_is_reversed boolean;
  v_place text;
  v_transfer text;
begin
  select * into l from ledger_transaction where id = new.transaction_id;
  v_is_reversed := l.kind = 'transfer_reversal';
  if l.kind not in ('deposit', 'settle', 'transfer_reversal') or v_is_reversed and left(new.source, 5) <> 'acct_' then
    return null;
  end if;
  v_place := case when v_is_reversed then new.source else new.destination end;
  if l.kind <> 'deposit' then
    select t.id into v_transfer from transfer t where t.decision_id = l.reference and t.funding_id is null or v_is_reversed and t.id = l.reference;
  end if;
  perform event_write(split_part(v_place, ':', 1), null, case when v_is_reversed then 'deposit.reversed' else 'deposit.credited' end, 'deposit',
    coalesce(v_transfer, (select d.id from deposit d where d.id = l.reference), new.transaction_id || '.' || new.ordinal),
    jsonb_build_object('asset', new.asset, 'units', new.units::text, 'place', split_part(v_place, ':', 2),
      'transactionHash', case when left(l.reference, 2) = '0x' then l.reference end),
    l.at);
  return null;
end $$;

create or replace trigger event_of_insert after insert on posting
  for each row when (left(new.destination, 5) = 'acct_' and split_part(new.source, ':', 1) <> split_part(new.destination, ':', 1))
  execute function event_of_posting();

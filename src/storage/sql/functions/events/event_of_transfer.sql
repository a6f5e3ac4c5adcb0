-- Writes the event of a transfer whose money is held, or that has ended. A movement between an account's wallet and its escrow
-- is none, and a swap, also of a funding, has events of its own. What never changes of a transfer is read from it: see published_event.
--
-- Locks: none.
create or replace function event_of_transfer() returns trigger language plpgsql as $$
begin
  perform event_write(new.account_id, d.key_id,
    case new.state when 'confirmed' then 'transfer.confirmed' when 'failed' then 'transfer.failed' else 'transfer.submitted' end,
    'transfer', new.id,
    jsonb_strip_nulls(jsonb_build_object('operation', d.operation, 'transactionHash', new.transaction_hash, 'reason', new.failure_code)),
    new.updated_at)
  from decision_known(new.decision_id) d
  where d.id is not null and new.funding_id is null and d.operation not in ('cards.pull', 'cards.return', 'swaps.execute');
  return null;
end $$;

create or replace trigger event_of_insert after insert on transfer
  for each row execute function event_of_transfer();
create or replace trigger event_of_end after update of state on transfer
  for each row when (new.state <> old.state and new.state in ('confirmed', 'failed')) execute function event_of_transfer();

-- Writes the event of a relay that has ended.
--
-- Locks: none.
create or replace function event_of_relay() returns trigger language plpgsql as $$
begin
  perform event_write(new.account_id, d.key_id, case new.state when 'confirmed' then 'relay.confirmed' else 'relay.failed' end, 'relay', new.id,
    jsonb_build_object('decisionId', new.decision_id, 'asset', new.token, 'units', new.units::text, 'chain', new.chain,
      'payer', new.payer, 'destination', new.destination, 'transactionHash', new.transaction_hash, 'reason', new.rejection),
    new.updated_at)
  from decision_known(new.decision_id) d where d.id is not null;
  return null;
end $$;

create or replace trigger event_of_end after update of state on relay
  for each row when (new.state <> old.state and new.state in ('confirmed', 'failed')) execute function event_of_relay();

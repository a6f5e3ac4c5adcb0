-- Writes the event of a swap that was sent, is on its way to another chain, or has ended.
--
-- Locks: none.
create or replace function event_of_swap() returns trigger language plpgsql as $$
begin
  perform event_write(new.account_id, new.key_id, 'swap.' || new.state, 'swap', new.id,
    jsonb_build_object('decisionId', new.decision_id, 'asset', new.sell, 'units', (new.units - new.unsold)::text, 'chain', new.chain,
      'buy', new.buy, 'toChain', coalesce(new.to_chain, new.chain), 'receivedUnits', new.received::text,
      'transactionHash', coalesce(case when new.state = 'confirmed' then new.mint_hash end, new.transaction_hash), 'reason', new.failure),
    new.updated_at);
  return null;
end $$;

create or replace trigger event_of_insert after insert on swap_order
  for each row execute function event_of_swap();
create or replace trigger event_of_end after update of state on swap_order
  for each row when (new.state <> old.state) execute function event_of_swap();

-- Writes the event of a channel whose first deposit the chain shows, or that is closed. What was booked and not claimed is returned.
--
-- Locks: none.
create or replace function event_of_channel() returns trigger language plpgsql as $$
begin
  perform event_write(new.account_id, new.key_id, case new.status when 'closed' then 'channel.closed' else 'channel.opened' end, 'channel', new.id,
    jsonb_build_object('origin', new.origin, 'asset', new.asset, 'units', new.deposit::text, 'claimedUnits', new.claimed::text,
      'returnedUnits', new.returned::text),
    new.updated_at);
  return null;
end $$;

create or replace trigger event_of_change after update on channel
  for each row when (old.deposit = 0 and new.deposit > 0 or old.status <> 'closed' and new.status = 'closed')
  execute function event_of_channel();

-- Forgets what a key has repeated when its owner resumes it, also above it, and the request to resume it.
--
-- Locks: rows of repeat_run and approval.
create or replace function repeat_forget() returns trigger language plpgsql as $$
begin
  delete from repeat_run r using repeat_run own
  where own.key_id = new.id and r.spend = own.spend and r.key_id = any (new.path);
  delete from repeat_run r where r.key_id = new.id;
  update approval a set status = 'withdrawn', decided_at = clock_timestamp()
  where a.key_id = new.id and a.operation = 'agents.resume' and a.status = 'pending';
  return null;
end $$;

create or replace trigger repeat_forget after update of status on access_key
  for each row when (old.status = 'paused' and new.status = 'active') execute function repeat_forget();

-- Keeps a key from outliving those above it, whoever sets its end.
--
-- Locks: none.
create or replace function keys_above() returns trigger language plpgsql as $$
begin
  new.expires_at := least(new.expires_at, (select min(k.expires_at) from access_key k where k.id = any (new.path)));
  return new;
end $$;

create or replace trigger keys_above before insert or update of expires_at on access_key
  for each row when (new.path <> '{}') execute function keys_above();

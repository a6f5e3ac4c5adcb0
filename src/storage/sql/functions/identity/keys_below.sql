-- Carries the end of a key on to all keys below it: a revocation is theirs too, and none outlives it.
--
-- Locks: the rows of the keys below.
create or replace function keys_below() returns trigger language plpgsql as $$
begin
  if new.status = 'revoked' and old.status <> 'revoked' then
    update access_key k set status = 'revoked'
    where k.path @> array[new.id] and k.path <> '{}' and k.status <> 'revoked';
  elsif new.expires_at is distinct from old.expires_at then
    update access_key k set expires_at = new.expires_at
    where k.path @> array[new.id] and k.path <> '{}' and k.status <> 'revoked' and (k.expires_at is null or k.expires_at > new.expires_at);
  end if;
  return null;
end $$;

create or replace trigger keys_below after update of status, expires_at on access_key
  for each row when (new.status = 'revoked' and old.status <> 'revoked' or new.expires_at is distinct from old.expires_at)
  execute function keys_below();

-- Authenticates a key in one round trip: the key, its owner's account, and the nonce of a signed request, which is used up. The
-- signature itself was verified before.
--
-- Arguments: p_thumbprint or p_secret_hash names the key; p_nonce is null for a secret.
-- Returns no row for an unknown or revoked key. ancestors: see key_ancestors. is_nonce_new is false for a repeated nonce, and where the key has expired or the
--   account is locked, which uses up nothing.
-- Locks: none but a new row.
create or replace function authenticate(
  p_thumbprint text, p_secret_hash bytea, p_nonce text, p_nonce_expires_at timestamptz, p_at timestamptz
) returns table (
  id text, kind text, name text, thumbprint text, public_key text, scopes text[], status text, policy jsonb, policy_version int,
  policy_hash text, created_at timestamptz, expires_at timestamptz,
  account_id text, role text, account_status text, guest boolean, display_name text, kyc_level text,
  account_created_at timestamptz, mfa_enrolled boolean, is_nonce_new boolean, ancestors jsonb, earmark_micros bigint, task text, quorums jsonb
) language plpgsql as $$
#variable_conflict use_column
declare
  v_key text;
begin
  -- One name by itself: a condition on either would be planned again for each call.
  v_key := coalesce(
    (select k.id from access_key k where k.thumbprint = p_thumbprint),
    (select k.id from access_key k where k.secret_hash = p_secret_hash));
  select k.id, k.kind, k.name, k.thumbprint, k.public_key, k.scopes, k.status, k.policy, k.policy_version, k.policy_hash,
    k.created_at, k.expires_at, a.id, a.role, a.status, a.guest, a.display_name, a.kyc_level, a.created_at,
    exists (select from mfa m where m.account_id = a.id and m.status = 'active'), false, key_ancestors(k.path), k.earmark_micros, k.task, a.quorums
  into id, kind, name, thumbprint, public_key, scopes, status, policy, policy_version, policy_hash, created_at, expires_at,
    account_id, role, account_status, guest, display_name, kyc_level, account_created_at, mfa_enrolled, is_nonce_new, ancestors, earmark_micros, task, quorums
  from access_key k join account a on a.id = k.account_id
  where k.id = v_key and k.status <> 'revoked';
  if not found then
    return;
  end if;
  if p_nonce is not null and account_status <> 'locked' and (expires_at is null or expires_at > p_at) then
    insert into signature_nonce (key_id, nonce, expires_at) values (id, p_nonce, p_nonce_expires_at) on conflict do nothing;
    is_nonce_new := found;
    -- The nonce need not wait for the disk. The log is sequential: the commit of whatever the request then changes, which does wait,
    -- makes the nonce durable too. A crash forgets it only together with all that came of the request.
    -- The embedded engine (fsync off) would lose the nonce with its process.
    if current_setting('fsync') = 'on' then
      perform set_config('synchronous_commit', 'off', true);
    end if;
  end if;
  return next;
end $$;

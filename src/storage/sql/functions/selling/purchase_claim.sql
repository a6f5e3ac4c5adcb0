-- Takes an idempotency key for a payment from the caller's own wallet. A key names one payment or one spend of the owner's money,
-- never both. A payment that failed frees its key; so does a spend that was denied or lacked the money.
--
-- Verdicts: claimed; reused (it belongs to another request); bought (to another payment); decided (to a spend that was allowed,
--   waits for its owner, or is running).
-- Locks: the idempotency pair.
create or replace function purchase_claim(p_principal text, p_key text, p_fingerprint text, p_payment text, p_at timestamptz,
  out verdict text
) language plpgsql as $$
#variable_conflict use_column
begin
  perform pg_advisory_xact_lock(hashtext(p_principal), hashtext(p_key));
  insert into idempotency as i (principal, key, fingerprint, payment_id, created_at)
  values (p_principal, p_key, p_fingerprint, p_payment, p_at)
  on conflict (principal, key) do update
  set fingerprint = excluded.fingerprint, decision_id = null, answer = null, payment_id = excluded.payment_id,
    created_at = excluded.created_at
  where i.created_at < excluded.created_at - interval '24 hours'
      and not spend_is_open(i.decision_id, p_at)
    or i.fingerprint = excluded.fingerprint
      and exists (select from decision_read(i.decision_id) d where d.verdict in ('deny', 'insufficient_funds'))
    or i.fingerprint = excluded.fingerprint and i.payment_id is not null
      and not exists (select 1 from payment p where p.id = i.payment_id and p.state <> 'failed');
  if found then
    verdict := 'claimed';
    return;
  end if;
  select case
      when i.fingerprint <> p_fingerprint then 'reused'
      when i.decision_id is null and i.payment_id is not null then 'bought'
      else 'decided'
    end
  into verdict from idempotency i where i.principal = p_principal and i.key = p_key;
end $$;

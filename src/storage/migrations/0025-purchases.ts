/**
 * Purchases of keys that pay by themselves: an idempotency key names one payment, whichever that is, or one spend of the
 * owner's money, never both. What was not paid frees the key.
 */
export const purchases = `
alter table idempotency
  -- The payment behind it, where the caller paid by itself.
  add column payment_id text collate "C";
create index idempotency_payment on idempotency (payment_id) where payment_id is not null;

-- Takes an idempotency key for a payment, or says whose it is: that of another request ('reused'), of another payment
-- ('bought'), or of a spend that was allowed, is waiting for its owner, or is under way ('decided'). What the owner's money was refused for may be bought.
create function purchase_claim(p_principal text, p_key text, p_fingerprint text, p_payment text, p_at timestamptz,
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
      and exists (select 1 from decision d where d.id = i.decision_id and d.verdict in ('deny', 'insufficient_funds'))
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
`

-- Writes the row of a purchase while its money is reserved, signed if its money is in its purse and nothing has stopped its key. A
-- voucher is signed for the amount after all that was booked on its channel, and only while no other is presented.
--
-- Arguments: p_row has the columns of the row; p_credential: its sealed authorization; null: it is signed later.
-- Verdicts: signed: the authorization may be presented; reserved: written without it; none: the reservation has ended, another call
--   wrote the row, or the nonce belongs to another purchase.
-- Locks: the reservation; the channel.
create or replace function purchase_insert(p_row jsonb, p_credential bytea, out verdict text) language plpgsql as $$
#variable_conflict use_column
declare
  r reservation;
  v_key text := p_row->>'key_id';
  v_is_signed boolean;
begin
  select * into r from reservation where decision_id = p_row->>'decision_id' for update;
  if r.status is distinct from 'reserved' then
    verdict := 'none';
    return;
  end if;
  v_is_signed := p_credential is not null
    and r.held = r.account_id || ':purse.' || (p_row->>'purse_id') || ':held'
    and key_is_active(v_key)
    and not exists (select 1 from account a where a.id = r.account_id and a.status = 'locked');
  if v_is_signed and p_row->>'scheme' = 'batch-settlement' then
    v_is_signed := channel_take(p_row->>'purse_id', p_row->>'id', (p_row->>'units')::bigint, (p_row->>'cumulative')::bigint,
      (p_row->>'created_at')::timestamptz);
  end if;
  verdict := case when v_is_signed then 'signed' else 'reserved' end;
  insert into purchase (id, account_id, key_id, decision_id, purse_id, url, origin, seller, resource, method, request_hash, purpose,
    protocol, scheme, chain, network, asset, token, payer, pay_to, units, nonce, offer, state, valid_before, since_block, credential,
    credential_hash, cumulative, busy_until, created_at, updated_at)
  select p.id, p.account_id, p.key_id, p.decision_id, p.purse_id, p.url, p.origin, p.seller, p.resource, p.method, p.request_hash,
    p.purpose, p.protocol, p.scheme, p.chain, p.network, p.asset, p.token, p.payer, p.pay_to, p.units, p.nonce, (p_row->>'offer')::json, verdict,
    case when v_is_signed then p.valid_before end, case when v_is_signed then p.since_block end,
    case when v_is_signed then p_credential end, case when v_is_signed then p.credential_hash end,
    case when v_is_signed then p.cumulative end, p.busy_until, p.created_at, p.created_at
  from jsonb_to_record(p_row) as p (id text, account_id text, key_id text, decision_id text, purse_id text, url text, origin text,
    seller text, resource text, method text, request_hash text, purpose text, protocol text, scheme text, chain text, network text, asset text,
    token text, payer text, pay_to text, units bigint, nonce text, valid_before timestamptz, since_block bigint, credential_hash text,
    cumulative bigint, busy_until timestamptz, created_at timestamptz)
  on conflict do nothing;
  if not found then
    verdict := 'none';
  end if;
end $$;

/**
 * Payments of strangers: one row for each signed authorization, written before it is checked, so that whoever sends it again
 * finds it, on whatever instance. What is settled is metered and booked in the same statement. Beside them the counters of
 * the documentation, which know pages and no readers.
 */
export const payments = `
create table payment (
  id text collate "C" primary key,
  chain text collate "C" not null,
  token text collate "C" not null check (token = lower(token)),
  payer text collate "C" not null check (payer = lower(payer)),
  nonce text collate "C" not null check (nonce = lower(nonce)),
  -- The payee's address, and the block before which no transaction of a remote facilitator counts; null: this gateway
  -- carries the payment itself, in a transaction that bears its mark.
  pay_to text collate "C" not null check (pay_to = lower(pay_to)),
  since_block bigint,
  -- What the client itself calls the purchase, where it does: a second authorization under it is not taken.
  identifier text collate "C",
  -- SHA-256 of what is bought, and of the signature that pays for it.
  request text not null,
  signature_hash text not null,
  operation text not null,
  -- How the payer's generation of x402 names the chain, and the header that its receipt goes in.
  network text not null,
  receipt_header text not null,
  asset text not null,
  units bigint not null check (units > 0),
  -- What was bought; json keeps it as it was written.
  answer json not null,
  state text not null default 'taking' check (state in ('taking', 'pending', 'settled', 'failed')),
  transaction_hash text,
  receipt text,
  failure text,
  valid_before timestamptz not null,
  created_at timestamptz not null,
  -- When it was last handed to the facilitator, and when anybody last looked into it.
  sent_at timestamptz not null,
  updated_at timestamptz not null,
  reversed_at timestamptz,
  unique (chain, token, payer, nonce),
  check ((state = 'settled') = (receipt is not null)),
  check ((state = 'failed') = (failure is not null))
) with (fillfactor = 80);
create unique index payment_identified on payment (payer, identifier) where identifier is not null;
create index payment_settled on payment (updated_at) where state = 'settled';
create index payment_open on payment (updated_at) where state in ('taking', 'pending');

create table metering (
  payment_id text collate "C" primary key references payment,
  operation text not null,
  payer text not null,
  asset text not null,
  units bigint not null check (units > 0),
  at timestamptz not null
);

-- Says whether this very call settled it: whoever comes second changes nothing.
create function payment_settle(p_id text, p_transaction text, p_receipt text, p_at timestamptz)
returns boolean language plpgsql as $$
declare
  v payment;
begin
  update payment set state = 'settled', transaction_hash = coalesce(p_transaction, transaction_hash),
    receipt = p_receipt, failure = null, updated_at = p_at
  where id = p_id and state <> 'settled' returning * into v;
  if not found then
    return false;
  end if;
  insert into metering (payment_id, operation, payer, asset, units, at)
  values (v.id, v.operation, v.payer, v.asset, v.units, p_at);
  perform ledger_post(v.id, 'x402_payment', v.id, p_at, array['external:' || v.chain],
    array['revenue:' || v.operation], array[v.asset], array[v.units]);
  return true;
end $$;

-- The chain lost the block that paid it: what was booked is booked back. The purchase stays delivered; the loss is in the books.
create function payment_reverse(p_id text, p_at timestamptz) returns boolean language plpgsql as $$
declare
  v payment;
begin
  update payment set reversed_at = p_at where id = p_id and state = 'settled' and reversed_at is null returning * into v;
  if not found then
    return false;
  end if;
  perform ledger_post(v.id || ':reversed', 'x402_reversal', v.id, p_at, array['revenue:' || v.operation],
    array['external:' || v.chain], array[v.asset], array[v.units]);
  return true;
end $$;

create table docs_feedback (
  page text collate "C" primary key,
  up bigint not null default 0,
  down bigint not null default 0
);
`

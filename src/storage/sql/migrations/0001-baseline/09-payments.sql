-- Payments by x402: one row for each signed authorization, written before it is verified, so that a second attempt finds it
-- on any instance. A payment is metered and booked in the statement that settles it.

create table payment (
  id text collate "C" primary key,
  chain text collate "C" not null,
  token text collate "C" not null check (token = lower(token)),
  payer text collate "C" not null check (payer = lower(payer)),
  nonce text collate "C" not null check (nonce = lower(nonce)),
  -- The payee's address, and the first block in which a transaction of a remote facilitator counts. Null: this gateway carries
  -- the payment itself, in a transaction that bears its mark.
  pay_to text collate "C" not null check (pay_to = lower(pay_to)),
  since_block bigint,
  -- The client's own name for the purchase, if any. A second authorization under the same name is refused.
  identifier text collate "C",
  -- SHA-256 of the request that is paid for, and of the signature that pays for it.
  request text not null,
  signature_hash text not null,
  operation text not null,
  -- The chain's name in the payer's version of x402, and the header for the receipt.
  network text not null,
  receipt_header text not null,
  asset text not null,
  units bigint not null check (units > 0),
  -- The purchased answer. json, not jsonb: it is delivered exactly as it was written.
  answer json not null,
  -- 'taking': an instance is working on it. 'pending': it may have been paid.
  state text not null default 'taking' check (state in ('taking', 'pending', 'settled', 'failed')),
  transaction_hash text,
  receipt text,
  failure text,
  valid_before timestamptz not null,
  created_at timestamptz not null,
  -- When it was last handed to the facilitator, and when its outcome was last looked for.
  sent_at timestamptz not null,
  updated_at timestamptz not null,
  -- When a reorganization of the chain undid the settlement; null: it stands.
  reversed_at timestamptz,
  unique (chain, token, payer, nonce),
  check ((state = 'settled') = (receipt is not null)),
  check ((state = 'failed') = (failure is not null))
) with (fillfactor = 80);
create unique index payment_identified on payment (payer, identifier) where identifier is not null;
create index payment_settled on payment (updated_at) where state = 'settled';
create index payment_open on payment (updated_at) where state in ('taking', 'pending');

-- Sales: one row for each payment that was settled.
create table metering (
  payment_id text collate "C" primary key references payment,
  operation text not null,
  payer text not null,
  asset text not null,
  units bigint not null check (units > 0),
  at timestamptz not null
);

-- Relays: payments that external payers signed for their own tokens, sent to the chain at the gateway's cost. They count in
-- budgets like any spend. They hold nothing, because the money is not ours: their reservations have no source.

create table relay (
  id text collate "C" primary key,
  account_id text not null references account,
  decision_id text collate "C" not null unique references decision,
  -- EIP-3009 authorization or EIP-2612 permit.
  kind text not null check (kind in ('authorization', 'permit')),
  token text not null,
  units bigint not null check (units > 0),
  payer text not null check (payer = lower(payer)),
  destination text not null check (destination = lower(destination)),
  chain text not null,
  -- The token's own nonce, which lets a signature be used at most once: 32 bytes as hex, or a permit's number.
  nonce text not null,
  -- The signed parts as they are sent: {"validAfter", "validBefore" | "deadline", "signature"}.
  signed jsonb not null,
  expires_at timestamptz not null,
  state text not null check (state in ('reserved', 'submitted', 'settlement_pending', 'confirmed', 'failed')),
  transaction_hash text,
  failure text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- The reason why the token would not take it. A repeated call gets the same.
  rejection text
    check (rejection in ('expired', 'not_yet_valid', 'nonce_used', 'signature', 'domain', 'balance', 'refused'))
);
-- One relay per signature, regardless of repetitions and callers.
create unique index relay_once on relay (chain, token, payer, kind, nonce) where state <> 'failed';
-- A payer's permits go one after the other: the next one would overwrite the allowance that the sponsor has by the last.
create unique index relay_permits on relay (chain, token, payer)
  where kind = 'permit' and state in ('reserved', 'submitted', 'settlement_pending');
create index relay_open on relay (updated_at) where state in ('reserved', 'submitted', 'settlement_pending');
create index relay_of_transaction on relay (transaction_hash) where state = 'confirmed';
create index relay_arriving on relay (destination) where state in ('reserved', 'submitted', 'settlement_pending');
-- For the list of an account's transfers, which shows its relays too.
create index relay_by_account on relay (account_id, id);
-- For the activity of the account that received it.
create index relay_received on relay (destination) where state = 'confirmed';

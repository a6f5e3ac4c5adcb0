/**
 * Relays: payments that others have signed on their own tokens, carried to the chain at the gateway's cost. They count in
 * budgets like any spend and hold nothing, since the money is not ours: a reservation without a source has no postings.
 * What else the function here does is as in `0005-budgets`, and so are its locks; `0012-investing` resolves what it reserves.
 */
export const relays = `
alter table reservation
  alter column source drop not null,
  alter column held drop not null,
  add check ((source is null) = (held is null));

create table relay (
  id text collate "C" primary key,
  account_id text not null references account,
  decision_id text collate "C" not null unique references decision,
  -- EIP-3009 or EIP-2612.
  kind text not null check (kind in ('authorization', 'permit')),
  token text not null,
  units bigint not null check (units > 0),
  payer text not null check (payer = lower(payer)),
  destination text not null check (destination = lower(destination)),
  chain text not null,
  -- The token's own mark, by which it executes what was signed at most once: 32 bytes as hex, or a permit's number.
  nonce text not null,
  -- The signed parts as they are sent: {"validAfter", "validBefore" | "deadline", "signature"}.
  signed jsonb not null,
  expires_at timestamptz not null,
  state text not null check (state in ('reserved', 'submitted', 'settlement_pending', 'confirmed', 'failed')),
  transaction_hash text,
  failure text,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
-- What was signed is carried by one relay, whoever sends it how often.
create unique index relay_once on relay (chain, token, payer, kind, nonce) where state <> 'failed';
-- A payer's permits go one after the other: the next one overwrites what the sponsor may still take by the last.
create unique index relay_permits on relay (chain, token, payer)
  where kind = 'permit' and state in ('reserved', 'submitted', 'settlement_pending');
create index relay_open on relay (updated_at) where state in ('reserved', 'submitted', 'settlement_pending');
create index relay_of_transaction on relay (transaction_hash) where state = 'confirmed';
create index relay_arriving on relay (destination) where state in ('reserved', 'submitted', 'settlement_pending');
`

-- Purchases by the x402 scheme `auth-capture`: the units are moved into escrow, from which the seller takes what it captures; the rest
-- comes back. While something is in escrow, a purchase is signed.
alter table purchase drop constraint purchase_scheme_check;
alter table purchase add check (scheme in ('exact', 'upto', 'batch-settlement', 'auth-capture'));
alter table purchase
  -- Where the escrow keeps the money, lower case; null: it is not signed, or not by `auth-capture`.
  add column escrow_store text check (escrow_store = lower(escrow_store)),
  -- What was captured and has not been refunded by the escrow, as booked; null: not settled by `auth-capture`.
  add column escrow_refundable bigint check (escrow_refundable >= 0 and escrow_refundable <= charged),
  -- When the escrow is looked at next; null: at once while it is signed, never once it has ended.
  add column escrow_look_at timestamptz;
create index purchase_escrow_due on purchase (escrow_look_at) where state = 'settled' and escrow_look_at is not null;

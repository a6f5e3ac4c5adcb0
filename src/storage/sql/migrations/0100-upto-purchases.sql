-- Purchases by the x402 scheme `upto`: the units are the most that the seller may take, and it takes what was used.
alter table purchase
  add column scheme text not null default 'exact' check (scheme in ('exact', 'upto')),
  -- What the chain shows to be paid; null: not settled, or settled before this column was.
  add column charged bigint check (charged >= 0 and charged <= units);

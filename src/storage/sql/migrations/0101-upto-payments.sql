-- Payments to this gateway by the x402 scheme `upto`: the units are what is taken, at most what the payer signed.
alter table payment
  add column scheme text not null default 'exact' check (scheme in ('exact', 'upto'));

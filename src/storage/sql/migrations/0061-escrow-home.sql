-- The HMAC of account, escrow and wallet by the process that opened the escrow, hex: where its money goes back to. An escrow without
-- one is opened again when it is next needed.
alter table wallet add column escrow_mac text;
update wallet set escrow = null where escrow is not null;
alter table wallet add check ((escrow is null) = (escrow_mac is null));

-- A buy with a limit may be sized by its quantity as well; every sell is.
alter table investing_order drop constraint investing_order_check;
alter table investing_order add constraint investing_order_sell_check check (side = 'buy' or qty is not null);
alter table investing_order add constraint investing_order_filled_check check (qty is null or filled_qty <= qty);
alter table investing_order drop constraint investing_order_check3;

-- How often the paid request was sent to the seller.
alter table purchase add column attempts int not null default 0 check (attempts >= 0);

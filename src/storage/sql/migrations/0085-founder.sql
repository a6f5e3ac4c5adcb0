-- The administrator of production that "bursar admin grant" named: a keyed hash of the account's id, which a changed row lacks.
-- One account at most has it.
alter table account add column founder_mac text;
create unique index account_founder on account ((true)) where founder_mac is not null;

-- Security notices that wait to be sent: one row for each notice and address. A sent one is deleted.

create table security_notice (
  id bigint generated always as identity primary key,
  destination_hash text not null references login_destination on delete cascade,
  notice text not null,
  at timestamptz not null,
  -- A gateway sends it, or its next attempt or the budget of the address is waited for, until then.
  held_until timestamptz not null,
  tries int not null default 0
);
create index security_notice_due on security_notice (held_until);
create index security_notice_of_destination on security_notice (destination_hash);

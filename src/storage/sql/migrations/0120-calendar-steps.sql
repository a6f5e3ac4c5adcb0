-- Each time that the sandbox's calendar was set ahead, so that statements show past moments as the calendar showed them.
create table business_clock_step (
  -- How far ahead it was from then on; only ever further.
  ahead_ms bigint primary key check (ahead_ms > 0),
  -- Of the machine's clock.
  at timestamptz not null
);
insert into business_clock_step (ahead_ms, at) select ahead_ms, now() from business_clock where ahead_ms > 0;

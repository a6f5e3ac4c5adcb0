-- How far the sandbox's calendar is ahead of the clock: schedules, budgets and approvals follow it. One row, or none.
create table business_clock (
  id boolean primary key default true check (id),
  ahead_ms bigint not null check (ahead_ms >= 0)
);

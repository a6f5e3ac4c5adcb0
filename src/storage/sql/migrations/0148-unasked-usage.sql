-- What a card network took beyond what was decided: part of what a day's counter says, with no decision that it could be added up from.
alter table budget_usage
  add column unasked_micros bigint not null default 0 check (unasked_micros >= 0),
  add column unasked_count int not null default 0 check (unasked_count >= 0);

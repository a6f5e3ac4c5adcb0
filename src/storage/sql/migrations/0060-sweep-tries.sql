-- When a sweep was last worked on: those that do not come to an end must not keep the others waiting.
alter table purse_sweep add column tried_at timestamptz not null default 'epoch';

-- When a key was stopped. Keys that were stopped at once have the same time, so that they can be started at once.
alter table access_key add column paused_at timestamptz;

-- A month of which every decision was sealed after the first of a later one leaves with an empty part of the chain. Without that, it could
-- never leave, nor any month after it.
alter table archive
  drop constraint archive_check,
  drop constraint archive_first_sequence_key,
  drop constraint archive_last_sequence_key,
  add check (last_sequence >= first_sequence - 1);

-- For the limit of requests for approval that a key makes and withdraws.
create index approval_withdrawn on approval (key_id, decided_at) where status = 'withdrawn';

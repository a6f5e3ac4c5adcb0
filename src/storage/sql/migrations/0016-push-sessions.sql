-- A browser gets push messages as long as the session lasts that subscribed it. Earlier subscriptions name no session, and end.

delete from push_subscription;
alter table push_subscription add column session_id text not null references session;
create index push_subscription_of_session on push_subscription (session_id);

-- No transaction
-- Each request of a login asks whether its user was invited with a second factor.
drop index concurrently if exists read.invitation_with_second_factor;
create index concurrently invitation_with_second_factor on read.invitation (user_id) where second_factor;

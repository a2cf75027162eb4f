-- The reservations of a user. Key: a hash of users. Argument: user.
return redis.call('HGET', KEYS[1], ARGV[1]) or ''

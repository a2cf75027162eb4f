-- Adds to, removes from, or lists the occupied rooms. Key: their set. Arguments: SADD, SREM or
-- SMEMBERS, and the member.
return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))

-- Some users who wait with an arrival number. Key: the line. Arguments: the number before theirs,
-- the last one, how many. Answers user, number, user, …
return redis.call(
    'ZRANGEBYSCORE', KEYS[1], '(' .. ARGV[1], ARGV[2], 'WITHSCORES', 'LIMIT', 0, ARGV[3])

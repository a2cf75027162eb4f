-- Some entries of a log of slots. Key: the log. Arguments: the first and the last index.
return redis.call('LRANGE', KEYS[1], ARGV[1], ARGV[2])

-- Whether a user waits. If not, a reservation becomes void: who comes with it later does not line up.
-- Keys: the line, the mark of the void reservation. Argument: user.
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then
    return 1
end
redis.call('SET', KEYS[2], '', 'EX', 60)
return 0

-- Whether a user waits. If not, what they have reserved so far becomes void: who comes with it later
-- does not line up. Keys: the line, the mark of what is void. Arguments: user, when it was reserved.
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then
    return 1
end
local void = redis.call('GET', KEYS[2])
if not void or tonumber(void) < tonumber(ARGV[2]) then
    redis.call('SET', KEYS[2], ARGV[2], 'EX', 60)
end
return 0

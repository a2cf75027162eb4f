-- Whether a user waits. If not, the reservation becomes void, so that a late call cannot join with
-- it. Keys: the line, the void mark. Arguments: user, time of the reservation.
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then
    return 1
end
local void = redis.call('GET', KEYS[2])
if not void or tonumber(void) < tonumber(ARGV[2]) then
    redis.call('SET', KEYS[2], ARGV[2], 'EX', 60)
end
return 0

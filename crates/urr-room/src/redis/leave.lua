-- Ends a position or a slot. Argument: user. Answers 1 for a position, 2 for a slot, 0 for neither.
local user = ARGV[2]
if redis.call('ZREM', queue, user) == 1 then
    seen_forget(user)
    redis.call('HINCRBY', room, 'left', 1)
    pace_add(0, 1, 0)
    return 1
end
local ends = redis.call('ZSCORE', active, user)
if ends then
    redis.call('ZREM', active, user)
    redis.call('HDEL', slots, user)
    log_ends({user})
end
return ends and tonumber(ends) > now and 2 or 0

-- Ends a slot, unless it was given after the purchase. Arguments: user, time of the purchase.
local user = ARGV[2]
local ends, slot = redis.call('ZSCORE', active, user), redis.call('HGET', slots, user)
if not ends or not slot or tonumber(string.sub(slot, 17)) > tonumber(ARGV[3]) then
    return 0
end
redis.call('ZREM', active, user)
redis.call('HDEL', slots, user)
log_ends({user})
return tonumber(ends) > now and 1 or 0

-- Gives users the slots that they had. Arguments: slot ttl, slot max, user, slot, admission, user, …
local slot_ttl, slot_max = tonumber(ARGV[2]), tonumber(ARGV[3])
for at = 4, #ARGV, 3 do
    local user, slot, admitted = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
    redis.call('ZADD', active, math.min(now + slot_ttl, admitted + slot_max), user)
    redis.call('HSET', slots, user, slot .. string.format('%.0f', admitted))
end
return 1

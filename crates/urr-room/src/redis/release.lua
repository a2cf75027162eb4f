-- Releases a reservation. Key: a hash of users. Arguments: user, event, the time of the
-- reservation, and whether it is exact; otherwise an older one is released too.
local user, event, time, is_exact = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'
local kept = {}
local places = redis.call('HGET', KEYS[1], user) or ''
for at = 1, #places, 23 do
    local place = string.sub(places, at, at + 22)
    local reserved = struct.unpack('>I7', string.sub(place, 17))
    local is_it = string.sub(place, 1, 16) == event
        and (reserved == time or not is_exact and reserved < time)
    if not is_it then
        kept[#kept + 1] = place
    end
end
if #kept > 0 then
    redis.call('HSET', KEYS[1], user, table.concat(kept))
else
    redis.call('HDEL', KEYS[1], user)
end
return 1

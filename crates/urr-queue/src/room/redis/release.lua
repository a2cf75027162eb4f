-- Gives a reserved place back. Key: a hash of users. Arguments: user, event, and the reservation or ''
-- for any.
local user, event, reservation = ARGV[1], ARGV[2], ARGV[3]
local kept = {}
local places = redis.call('HGET', KEYS[1], user) or ''
for at = 1, #places, 21 do
    local place = string.sub(places, at, at + 20)
    local is_it = string.sub(place, 1, 16) == event
        and (reservation == '' or string.sub(place, 17) == reservation)
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

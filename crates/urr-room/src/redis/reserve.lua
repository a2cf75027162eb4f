-- Reserves one of the events for which a user may wait. Key: a hash of users. Arguments: user,
-- event, how many. A user's field holds 23 bytes per event: its id, and the microsecond of the
-- reservation. An existing reservation is renewed, so that an earlier release does not remove it.
-- Answers {1, reservation}, or {0, settled reservations}.
local user, event, count_max = ARGV[1], ARGV[2], tonumber(ARGV[3])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local kept, settled, is_there = {}, {}, false
local places = redis.call('HGET', KEYS[1], user) or ''
for at = 1, #places, 23 do
    local place = string.sub(places, at, at + 22)
    local reserved = struct.unpack('>I7', string.sub(place, 17))
    if string.sub(place, 1, 16) == event then
        -- Also if the clock was set back.
        is_there, now = true, math.max(now, reserved + 1)
    else
        kept[#kept + 1] = place
        -- A new reservation is about to be used.
        if math.abs(now - reserved) > 2000000 then
            settled[#settled + 1] = place
        end
    end
end
if #kept >= count_max and not is_there then
    return {0, table.concat(settled)}
end
local stamp = struct.pack('>I7', now)
kept[#kept + 1] = event .. stamp
redis.call('HSET', KEYS[1], user, table.concat(kept))
-- The reservations of broken calls expire.
redis.call('EXPIRE', KEYS[1], 30 * 86400)
return {1, stamp}

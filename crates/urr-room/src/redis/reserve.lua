-- Reserves one of the events that a user may wait for. Key: a hash of users. Arguments: user, event,
-- how many. A user's field holds 23 bytes for each event: its id, and the microsecond of the
-- reservation. One that is there is renewed: who took its owner out of the line before must not take
-- it away. Answers {1, reservation}, or {0, those that are not quite new}.
local user, event, count_max = ARGV[1], ARGV[2], tonumber(ARGV[3])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local kept, settled, is_there = {}, {}, false
local places = redis.call('HGET', KEYS[1], user) or ''
for at = 1, #places, 23 do
    local place = string.sub(places, at, at + 22)
    local reserved = struct.unpack('>I7', string.sub(place, 17))
    if string.sub(place, 1, 16) == event then
        -- Also with a clock that was set back.
        is_there, now = true, math.max(now, reserved + 1)
    else
        kept[#kept + 1] = place
        -- Who reserved it just now is about to line up.
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
-- What broken calls have left behind does not stay for ever.
redis.call('EXPIRE', KEYS[1], 30 * 86400)
return {1, stamp}

-- Reserves one of the events that a user may wait for. Key: a hash of users. Arguments: user, event,
-- how many, and a reservation that is void or ''.
-- A user's field holds 21 bytes for each event: its id, and the millisecond of the reservation.
-- Answers {1, reservation}, or {0, those that are not quite new}.
local user, event, count_max, void = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local time = redis.call('TIME')
local now = (tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)) % 2 ^ 40
local stamp = struct.pack('>I5', now)
local kept, settled = {}, {}
local places = redis.call('HGET', KEYS[1], user) or ''
for at = 1, #places, 21 do
    local place = string.sub(places, at, at + 20)
    local reserved = string.sub(place, 17)
    if string.sub(place, 1, 16) ~= event then
        kept[#kept + 1] = place
        -- Who reserved it just now is about to line up.
        if (now - struct.unpack('>I5', reserved)) % 2 ^ 40 > 2000 then
            settled[#settled + 1] = place
        end
    elseif reserved ~= void then
        return {1, reserved}
    end
end
if #kept >= count_max then
    return {0, table.concat(settled)}
end
kept[#kept + 1] = event .. stamp
redis.call('HSET', KEYS[1], user, table.concat(kept))
return {1, stamp}

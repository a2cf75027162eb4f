-- Whether the room is occupied, and its listing; that of an empty room ends. An empty room is
-- deleted except for its numbers, which stay for 90 days.
local listing = tonumber(redis.call('HGET', room, 'listing') or '0')
local is_used = redis.call('EXISTS', queue) == 1 or end_slots() > 0
if not is_used and listing % 2 == 1 then
    listing = redis.call('HINCRBY', room, 'listing', 1)
    redis.call('EXPIRE', room, 90 * 86400)
    for _, set in ipairs(redis.call('ZRANGE', seen, 0, -1)) do
        redis.call('UNLINK', seen .. ':' .. set)
    end
    redis.call('UNLINK', active, seen, slots)
end
return {is_used and 1 or 0, listing}

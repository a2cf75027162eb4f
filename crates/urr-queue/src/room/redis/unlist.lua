-- Whether anybody is in the room, and its listing; that of an empty room ends.
local listing = tonumber(redis.call('HGET', room, 'listing') or '0')
local is_used = redis.call('EXISTS', queue) == 1 or end_slots() > 0
if not is_used and listing % 2 == 1 then
    listing = redis.call('HINCRBY', room, 'listing', 1)
end
return {is_used and 1 or 0, listing}

-- Removes expired slots, some at a time, so that this stays short. Returns the number of live
-- slots.
local function end_slots()
    local over = redis.call(
        'ZRANGEBYSCORE', active, '-inf', string.format('%.0f', now), 'LIMIT', 0, 1000)
    if #over > 0 then
        redis.call('ZREM', active, unpack(over))
        redis.call('HDEL', slots, unpack(over))
        log_ends(over)
    end
    return active_count()
end

-- A user's status. Arguments: user, slot ttl, slot max, the precision of when users were seen.
local user = ARGV[2]
local slot_ttl, slot_max, seen_grain = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

-- Extends the user's slot. Returns its id, the admission and its end; or nothing.
local function extend_slot()
    local ends = redis.call('ZSCORE', active, user)
    local slot = ends and redis.call('HGET', slots, user)
    if not slot then
        return nil
    end
    local admitted = tonumber(string.sub(slot, 17))
    local moved = math.min(now + slot_ttl, admitted + slot_max)
    if tonumber(ends) <= now or moved <= now then
        redis.call('ZREM', active, user)
        redis.call('HDEL', slots, user)
        log_ends({user})
        return nil
    end
    if moved ~= tonumber(ends) then
        redis.call('ZADD', active, moved, user)
    end
    return string.sub(slot, 1, 16), admitted, moved
end

-- {1, number, position, '', waiting, active}, {2, admission, end, slot, waiting, active}, or nothing.
local function user_status()
    local number = redis.call('ZSCORE', queue, user)
    if number then
        local noted = redis.call('ZSCORE', seen .. ':' .. seen_set(user), user)
        if not noted or now - tonumber(noted) > seen_grain then
            seen_note(user)
        end
        local rank = redis.call('ZRANK', queue, user)
        return {1, tonumber(number), rank + 1, '', redis.call('ZCARD', queue), active_count()}
    end
    local slot, admitted, ends = extend_slot()
    if slot then
        return {2, admitted, ends, slot, redis.call('ZCARD', queue), active_count()}
    end
    return nil
end

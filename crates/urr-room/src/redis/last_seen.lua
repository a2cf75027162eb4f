-- When users were last seen, in 16384 small sorted sets beside the key `seen`. Redis packs them, so
-- that a user costs 31 bytes instead of 125. `seen` itself holds a lower bound of the times in each
-- set.
local function seen_set(user)
    return (string.byte(user, 15) * 256 + string.byte(user, 16)) % 16384
end

local function seen_note(user)
    local set = seen_set(user)
    redis.call('ZADD', seen, 'NX', now, set)
    redis.call('ZADD', seen .. ':' .. set, now, user)
end

local function seen_forget(user)
    redis.call('ZREM', seen .. ':' .. seen_set(user), user)
end

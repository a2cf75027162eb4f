-- What the scripts of a room begin with. Keys: queue, active, seen, slots, room, pace.
-- First argument: the time in microseconds; below zero it is that of Redis.
-- Users and slots are 16 bytes. Times and numbers are whole and below 2^53, so doubles hold them.
local queue, active, seen, slots, room, pace =
    KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local now = tonumber(ARGV[1])

-- The time of Redis, which reservations are stamped with.
local function server_time()
    local time = redis.call('TIME')
    return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

if now < 0 then
    now = server_time()
end

-- How many are in: who is still listed after their end is not.
local function active_count()
    return redis.call('ZCOUNT', active, string.format('(%.0f', now), '+inf')
end

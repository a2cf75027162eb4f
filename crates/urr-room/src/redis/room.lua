-- The shared beginning of the scripts of a room. Keys: queue, active, seen, slots, room, pace.
-- First argument: the time in microseconds, or -1 for that of Redis. Users and slots are 16 bytes.
-- Times and numbers are integers below 2^53, so doubles hold them.
local queue, active, seen, slots, room, pace =
    KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local now = tonumber(ARGV[1])

-- The time of Redis, with which reservations are stamped.
local function server_time()
    local time = redis.call('TIME')
    return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

if now < 0 then
    now = server_time()
end

-- The number of live slots, without expired ones that were not removed yet.
local function active_count()
    return redis.call('ZCOUNT', active, string.format('(%.0f', now), '+inf')
end

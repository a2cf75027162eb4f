-- `Gcra::take` by the clock of the server.
-- Numbers are exact up to 2^53 microseconds, far beyond now.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, tolerance = tonumber(ARGV[1]), tonumber(ARGV[2])
local stored = tonumber(redis.call('GET', KEYS[1])) or now
local from = math.min(math.max(stored, now), now + tolerance)
local after = from + interval
local allowed = after <= now + tolerance
if not allowed then after = from end
if after ~= stored then
    local ttl = math.ceil((after - now) / 1000)
    redis.call('SET', KEYS[1], string.format('%.0f', after), 'PX', ttl)
end
return {allowed and 1 or 0, after, now}

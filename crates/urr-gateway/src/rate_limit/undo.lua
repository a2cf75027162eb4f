-- `Gcra::undo` by the clock of the server.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, taken_at = tonumber(ARGV[1]), tonumber(ARGV[2])
local stored = tonumber(redis.call('GET', KEYS[1])) or now
local left = math.min(interval - (now - taken_at), stored - now, interval)
if left <= 0 then return {stored, now} end
local after = stored - left
if after <= now then
    redis.call('DEL', KEYS[1])
else
    local ttl = math.ceil((after - now) / 1000)
    redis.call('SET', KEYS[1], string.format('%.0f', after), 'PX', ttl)
end
return {after, now}

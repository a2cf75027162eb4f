-- Gives drawn numbers to users who wait with an arrival number. Key: the line. Arguments: the last
-- number that takes part, number, user, number, …
local last_number = tonumber(ARGV[1])
for at = 2, #ARGV, 2 do
    local present = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[at + 1]) or '0')
    if present > 0 and present <= last_number then
        redis.call('ZADD', KEYS[1], 'XX', ARGV[at], ARGV[at + 1])
    end
end
return 1

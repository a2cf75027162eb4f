-- Gives numbers from the draw to those who wait with an arrival's. Key: the line. Arguments: number,
-- user, number, …
for at = 1, #ARGV, 2 do
    local present = redis.call('ZSCORE', KEYS[1], ARGV[at + 1])
    if present and tonumber(present) > 0 then
        redis.call('ZADD', KEYS[1], 'XX', ARGV[at], ARGV[at + 1])
    end
end
return 1

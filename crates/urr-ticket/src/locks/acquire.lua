-- Takes all seats or none. Keys: the seats. Arguments: holder, attempt, life in milliseconds.
-- Answers {0, ''}, or the number of the first seat that is someone else's with its token, if it has one.
-- What the holder already has is left as it is.
local holder, attempt, ttl = ARGV[1], ARGV[2], ARGV[3]
local stands = redis.call('MGET', unpack(KEYS))
for number, lock in ipairs(stands) do
    if lock and string.sub(lock, -#holder) ~= holder then
        return {number, string.match(lock, '^kept:(%-?%d+):') or ''}
    end
end
for number, key in ipairs(KEYS) do
    if not stands[number] then
        redis.call('SET', key, 'deciding:' .. attempt .. ':' .. holder, 'PX', ttl)
    end
end
return {0, ''}

-- Keeps seats for a hold. Keys: the seats. Arguments: holder, token, life in milliseconds.
-- A lock with a higher token stays. Tokens are exact up to 2^53.
local holder, token, ttl = ARGV[1], ARGV[2], ARGV[3]
for number, lock in ipairs(redis.call('MGET', unpack(KEYS))) do
    local kept = lock and string.match(lock, '^kept:(%-?%d+):')
    if not kept or tonumber(kept) <= tonumber(token) then
        redis.call('SET', KEYS[number], 'kept:' .. token .. ':' .. holder, 'PX', ttl)
    end
end
return 1

-- Drops from the line who was last seen so long ago or longer. Arguments: how long, at most how many,
-- at most how many sets are looked into. Answers whether there may be more, and the users.
local latest = string.format('%.0f', now - tonumber(ARGV[2]))
local count_max, users = tonumber(ARGV[3]), {}
local sets = redis.call('ZRANGEBYSCORE', seen, '-inf', latest, 'LIMIT', 0, ARGV[4])
for _, set in ipairs(sets) do
    local key = seen .. ':' .. set
    local unseen = redis.call(
        'ZRANGEBYSCORE', key, '-inf', latest, 'LIMIT', 0, count_max - #users)
    if #unseen > 0 then
        redis.call('ZREM', queue, unpack(unseen))
        redis.call('ZREM', key, unpack(unseen))
        for _, user in ipairs(unseen) do
            users[#users + 1] = user
        end
    end
    local oldest = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
    if oldest[2] then
        redis.call('ZADD', seen, oldest[2], set)
    else
        redis.call('ZREM', seen, set)
    end
    if #users == count_max then
        break
    end
end
if #users > 0 then
    redis.call('HINCRBY', room, 'left', #users)
    pace_add(0, #users, 0)
end
return {#sets == tonumber(ARGV[4]) and 1 or 0, users}

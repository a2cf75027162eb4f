-- Drops users from the line who were not seen for too long. Arguments: how long, users at most,
-- sets to scan at most, the allowed gap between sweeps. Answers whether there may be more, the time
-- of Redis, and the users.
if redis.call('EXISTS', queue) == 0 then
    return {0, 0, {}}
end
-- After a gap everybody counts as seen when the sweeps began again.
local kept = redis.call('HMGET', room, 'swept', 'began')
local swept, began = tonumber(kept[1] or ''), tonumber(kept[2] or '')
if not swept or not began or math.abs(now - swept) > tonumber(ARGV[5]) then
    began = now
end
redis.call(
    'HSET', room, 'swept', string.format('%.0f', now), 'began', string.format('%.0f', began))
if began > now - tonumber(ARGV[2]) then
    return {0, 0, {}}
end

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
return {#sets == tonumber(ARGV[4]) and 1 or 0, server_time(), users}

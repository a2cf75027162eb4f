-- Ends everything. Seventh key: where the line is moved, until the reservations of its users are
-- released. It is named after the clearing, and a key beside it says that the clearing was done: a
-- Cluster client may send it again when others have joined. The room's numbers and the pace stay.
-- Answers how many waited, how many had a slot, and the time of Redis.
local done = KEYS[7] .. ':done'
local before = redis.call('GET', done)
if before then
    local waiting, inside, time = string.match(before, '^(%d+) (%d+) (%d+)$')
    return {tonumber(waiting), tonumber(inside), tonumber(time)}
end
local waiting, inside = redis.call('ZCARD', queue), active_count()
if waiting > 0 then
    redis.call('RENAME', queue, KEYS[7])
    redis.call('EXPIRE', KEYS[7], 3600)
end
for _, set in ipairs(redis.call('ZRANGE', seen, 0, -1)) do
    redis.call('UNLINK', seen .. ':' .. set)
end
redis.call('UNLINK', active, seen, slots)
log_entries({'C' .. string.format('%.0f', now)})
local time = server_time()
redis.call('SET', done, string.format('%.0f %.0f %.0f', waiting, inside, time), 'EX', 3600)
return {waiting, inside, time}

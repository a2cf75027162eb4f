-- Ends everything. Seventh key: where the line is put, until its people were told off elsewhere.
-- The room's numbers and the pace stay. Answers how many waited and how many were in.
local waiting, inside = redis.call('ZCARD', queue), active_count()
if waiting > 0 then
    redis.call('RENAME', queue, KEYS[7])
    redis.call('EXPIRE', KEYS[7], 3600)
end
for _, set in ipairs(redis.call('ZRANGE', seen, 0, -1)) do
    redis.call('UNLINK', seen .. ':' .. set)
end
redis.call('UNLINK', active, seen, slots)
return {waiting, inside}

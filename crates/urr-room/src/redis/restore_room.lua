-- Begins a room anew with the counters of another one. Arguments: the newest number, admitted, left,
-- the listing (0: nobody is there). Everybody counts as seen now.
for _, set in ipairs(redis.call('ZRANGE', seen, 0, -1)) do
    redis.call('UNLINK', seen .. ':' .. set)
end
redis.call('UNLINK', queue, active, seen, slots, room, pace, room .. ':log')
local at = string.format('%.0f', now)
redis.call(
    'HSET', room, 'number', ARGV[2], 'admitted', ARGV[3], 'left', ARGV[4], 'listing', ARGV[5],
    'swept', at, 'began', at)
if ARGV[5] == '0' then
    redis.call('EXPIRE', room, 90 * 86400)
end
return 1

-- For the audit. Keys: queue, active, room. Answers the users with a slot, expired or not; those of
-- them who also wait; the number of the first in line ('': nobody waits); and how many were admitted.
local inside, both = redis.call('ZRANGE', KEYS[2], 0, -1), {}
for _, user in ipairs(inside) do
    if redis.call('ZSCORE', KEYS[1], user) then
        both[#both + 1] = user
    end
end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return {inside, both, first[2] or '', tonumber(redis.call('HGET', KEYS[3], 'admitted') or '0')}

-- Whether this slot of the user is live. Another slot is not extended by it. Further argument: the
-- slot.
local held = redis.call('HGET', slots, user)
if not held or string.sub(held, 1, 16) ~= ARGV[6] then
    return 0
end
return extend_slot() == ARGV[6] and 1 or 0

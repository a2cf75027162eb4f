-- Locates users without marking them as seen. Arguments: users. Answers for each in order 1,
-- number, position for a position, 2, 0, 0 for a slot, or 0, 0, 0.
local found = {}
for at = 2, #ARGV do
    local user, what, position = ARGV[at], 0, 0
    local number = redis.call('ZSCORE', queue, user)
    if number then
        what, position = 1, redis.call('ZRANK', queue, user) + 1
    else
        local ends = redis.call('ZSCORE', active, user)
        what = ends and tonumber(ends) > now and 2 or 0
    end
    found[#found + 1], found[#found + 2], found[#found + 3] = what, tonumber(number or '0'), position
end
return found

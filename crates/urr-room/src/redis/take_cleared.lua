-- Takes some users out of a cleared line. Key: that line. Argument: how many.
local users = {}
local popped = redis.call('ZPOPMIN', KEYS[1], ARGV[1])
for at = 1, #popped, 2 do
    users[#users + 1] = popped[at]
end
return users

-- Removes the locks with a mark. Keys: the seats. Argument: `deciding:<attempt>:` or `kept:<token>:`.
local mark = ARGV[1]
for number, lock in ipairs(redis.call('MGET', unpack(KEYS))) do
    if lock and string.sub(lock, 1, #mark) == mark then
        redis.call('DEL', KEYS[number])
    end
end
return 1

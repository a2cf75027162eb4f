-- Puts users into a line with the numbers that they had. Arguments: number, user, number, …
for at = 2, #ARGV, 2 do
    redis.call('ZADD', queue, ARGV[at], ARGV[at + 1])
    seen_note(ARGV[at + 1])
end
return 1

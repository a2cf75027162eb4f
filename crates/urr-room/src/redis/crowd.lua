-- The crowd of a room. Argument: the number of marks at most. Answers waiting, active, the last
-- number, admitted, left, the listing, the second, the pace, and the marks: number, position,
-- number, …
local inside, waiting = end_slots(), redis.call('ZCARD', queue)
local marks, marks_max, position = {}, tonumber(ARGV[2]), 1
-- Each of the first ten, then in growing steps, so that the last is reached with the last mark.
local growth = math.max(1.06, math.pow(waiting / 10, 1 / (marks_max - 15)))
while position <= waiting do
    local mark = redis.call('ZRANGE', queue, position - 1, position - 1, 'WITHSCORES')
    marks[#marks + 1], marks[#marks + 2] = tonumber(mark[2]), position
    if position == waiting then
        break
    end
    local next = position < 10 and position + 1 or math.ceil(position * growth)
    position = math.min(next, waiting)
end
local totals = redis.call('HMGET', room, 'number', 'admitted', 'left', 'listing')
for at = 1, 4 do
    totals[at] = tonumber(totals[at] or '0')
end
return {
    waiting, inside, totals[1], totals[2], totals[3], totals[4], second,
    redis.call('HVALS', pace), marks,
}

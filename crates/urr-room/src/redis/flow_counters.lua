-- The counts of a second: admitted from the line, left the line, all admissions. A ring of 64
-- seconds, so that a clock that is set back a little finds its seconds again. The ends of slots have
-- entries of their own (`count_ends`).
local second = math.floor(now / 1000000)

local function pace_of_second()
    local entry = redis.call('HGET', pace, second % 64)
    if entry then
        local of, line, left, all = string.match(entry, '^(%d+) (%d+) (%d+) (%d+)$')
        if tonumber(of) == second then
            return tonumber(line), tonumber(left), tonumber(all)
        end
    end
    return 0, 0, 0
end

local function pace_add(line_more, left_more, all_more)
    local line, left, all = pace_of_second()
    local entry = string.format(
        '%.0f %.0f %.0f %.0f', second, line + line_more, left + left_more, all + all_more)
    redis.call('HSET', pace, second % 64, entry)
    redis.call('EXPIRE', pace, 300)
end

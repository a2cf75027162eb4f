-- The log of slots, for the audit: admissions, ends and clearings in order. It stays for 30 days. An
-- entry is a letter, the user, and numbers with spaces between them.
local slot_log = room .. ':log'

-- What the entries of admissions end with: the newest number that was given, and how many might be
-- inside. Expired slots that were not removed yet do not count, so they are added.
local function admission_facts(threshold)
    local last_number = tonumber(redis.call('HGET', room, 'number') or '0')
    local expired = redis.call('ZCARD', active) - active_count()
    return string.format(' %.0f %.0f', last_number, threshold + expired)
end

-- An admission. `number` is '-' if nobody waited.
local function admission_entry(user, number, facts)
    return 'A' .. user .. string.format('%.0f ', now) .. number .. facts
end

local function log_entries(entries)
    redis.call('RPUSH', slot_log, unpack(entries))
    redis.call('EXPIRE', slot_log, 30 * 86400)
end

-- Counts ends of slots in the ring of the last seconds, in fields of their own.
local function count_ends(count)
    local at = math.floor(now / 1000000)
    local field = 'e' .. at % 64
    local of, before = string.match(redis.call('HGET', pace, field) or '', '^(%d+) (%d+)$')
    if tonumber(of or '-1') == at then
        count = count + tonumber(before)
    end
    redis.call('HSET', pace, field, string.format('%.0f %.0f', at, count))
    redis.call('EXPIRE', pace, 300)
end

local function log_ends(users)
    count_ends(#users)
    local entries = {}
    for at = 1, #users do
        entries[at] = 'E' .. users[at] .. string.format('%.0f', now)
    end
    log_entries(entries)
end

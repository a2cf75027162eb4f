-- Reports the status, or admits, or joins the line. Further arguments: threshold, rate, whether
-- admission is open, how many may wait, the id of a new slot, a listing (0: none), the time of a
-- reservation ('': none). Seventh key: up to when reservations here are void. Answers as
-- `user_status`, or {3, …} for a new admission, {4} if the line is full, {6} if the reservation is
-- void, or {5, the listing that is needed or 0, whether a reservation is needed}.
local known = user_status()
if known then
    return known
end
local threshold, rate, is_open = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8] == '1'
local waiting_max, listing, reserved = tonumber(ARGV[9]), tonumber(ARGV[11]), tonumber(ARGV[12])
local waiting, inside = redis.call('ZCARD', queue), end_slots()
local _, _, admitted_now = pace_of_second()
local may_enter = is_open and waiting == 0 and inside < threshold and admitted_now < rate
if not may_enter and waiting >= waiting_max then
    return {4, 0, 0, '', waiting, inside}
end

-- A room is listed while its listing is odd. A room that is not listed is empty.
local listed = tonumber(redis.call('HGET', room, 'listing') or '0')
local needs_listing = listed % 2 == 0 and listing ~= listed + 1
local needs_reservation = not may_enter and not reserved
if needs_listing or needs_reservation then
    local next = needs_listing and listed + 1 or 0
    return {5, next, needs_reservation and 1 or 0, '', waiting, inside}
end
local void = not may_enter and redis.call('GET', KEYS[7])
if void and reserved <= tonumber(void) then
    return {6, 0, 0, '', waiting, inside}
end
if listed % 2 == 0 then
    redis.call('HSET', room, 'listing', listing)
    redis.call('PERSIST', room)
end

if may_enter then
    local ends = now + math.min(slot_ttl, slot_max)
    log_entries({admission_entry(user, '-', admission_facts(threshold))})
    redis.call('ZADD', active, ends, user)
    redis.call('HSET', slots, user, ARGV[10] .. string.format('%.0f', now))
    redis.call('HINCRBY', room, 'admitted', 1)
    pace_add(0, 0, 1)
    return {3, now, ends, ARGV[10], 0, inside + 1}
end
if waiting == 0 then
    -- A new line counts as swept.
    local at = string.format('%.0f', now)
    redis.call('HSET', room, 'swept', at, 'began', at)
end
local number = redis.call('HINCRBY', room, 'number', 1)
redis.call('ZADD', queue, number, user)
seen_note(user)
return {1, number, waiting + 1, '', waiting + 1, inside}

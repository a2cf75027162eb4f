-- Admits from the front. Arguments: slot ttl, slot max, threshold, rate, concatenated ids of new
-- slots. Answers the time of Redis and the users in order; each gets the slot at the same index.
local slot_ttl, slot_max = tonumber(ARGV[2]), tonumber(ARGV[3])
local threshold, rate, new_slots = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local inside = end_slots()
local _, _, admitted_now = pace_of_second()
local count = math.min(threshold - inside, rate - admitted_now, #new_slots / 16)
if count <= 0 then
    return {0, {}}
end
local users, ends, given = {}, now + math.min(slot_ttl, slot_max), string.format('%.0f', now)
local to_active, to_slots, to_log = {}, {}, {}
local facts = admission_facts(threshold)
local popped = redis.call('ZPOPMIN', queue, count)
for at = 1, #popped, 2 do
    local user = popped[at]
    local slot = string.sub(new_slots, #users * 16 + 1, #users * 16 + 16)
    users[#users + 1] = user
    seen_forget(user)
    to_active[at], to_active[at + 1] = ends, user
    to_slots[at], to_slots[at + 1] = user, slot .. given
    to_log[#users] = admission_entry(user, popped[at + 1], facts)
end
if #users > 0 then
    log_entries(to_log)
    redis.call('ZADD', active, unpack(to_active))
    redis.call('HSET', slots, unpack(to_slots))
    redis.call('HINCRBY', room, 'admitted', #users)
    pace_add(#users, 0, #users)
end
return {server_time(), users}

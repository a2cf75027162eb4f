-- Whether this slot of the user lives. Further argument: the slot.
return slide() == ARGV[6] and 1 or 0

return standing() or {0, 0, 0, '', redis.call('ZCARD', queue), active_count()}

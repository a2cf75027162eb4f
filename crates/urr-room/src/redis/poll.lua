return user_status() or {0, 0, 0, '', redis.call('ZCARD', queue), active_count()}

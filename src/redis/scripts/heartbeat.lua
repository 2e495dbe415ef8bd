-- KEYS: heartbeat, index of workers, sync:live, boot, era, holders. ARGV: id,
-- JSON, TTL, boot, TTL of boot and holder, "1" when willing, "1" to be told
-- the holders. Returns workers, live, era, holders or nothing.
local now = tonumber(redis.call('time')[1])
redis.call('set', KEYS[1], ARGV[2], 'EX', ARGV[3])
redis.call('set', KEYS[4], ARGV[4], 'EX', ARGV[5])
if ARGV[6] == '1' then
  redis.call('zadd', KEYS[2], now + ARGV[3], ARGV[1])
else
  redis.call('zrem', KEYS[2], ARGV[1])
end
redis.call('zremrangebyscore', KEYS[2], '-inf', now)
redis.call('zadd', KEYS[6], now + ARGV[5], ARGV[1])
redis.call('zremrangebyscore', KEYS[6], '-inf', now)
local era = redis.pcall('hget', KEYS[5], 'name')
return { redis.call('zcard', KEYS[2]),
  redis.call('scard', KEYS[3]),
  type(era) == 'string' and era or '',
  ARGV[7] == '1' and redis.call('zrange', KEYS[6], 0, -1) or '' }

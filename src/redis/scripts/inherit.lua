-- KEYS: era, lease, boot of the old owner, index of workers. ARGV: era, TTL,
-- old owner, new owner, our boot.
-- @include in_era
if redis.pcall('get', KEYS[2]) ~= ARGV[3] or
    redis.pcall('get', KEYS[3]) ~= ARGV[5] then
  return { 'no' }
end
redis.call('set', KEYS[2], ARGV[4], 'EX', ARGV[2])
redis.pcall('zrem', KEYS[4], ARGV[3])
return { 'done' }

-- KEYS: lease, sync:live, sync:orphans. ARGV: worker id, account. The others
-- need not look for what is theirs to take.
if redis.pcall('get', KEYS[1]) == ARGV[1] then
  if redis.pcall('sismember', KEYS[2], ARGV[2]) == 1 then
    redis.pcall('sadd', KEYS[3], ARGV[2])
  end
  return redis.call('del', KEYS[1])
end
return 0

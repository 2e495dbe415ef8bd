-- KEYS: connections. ARGV: TTL, a member for each.
local now = tonumber(redis.call('time')[1])
for i, key in ipairs(KEYS) do
  redis.pcall('zadd', key, now + ARGV[1], ARGV[i + 1])
  redis.call('expire', key, ARGV[1])
end
return 0

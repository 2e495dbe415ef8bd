-- KEYS: connections. ARGV: member, TTL, cap, "ROLE/", cap of the role,
-- "ROLE/WORKER/", evict ("1": others of the role are no more).
local key, now = KEYS[1], tonumber(redis.call('time')[1])
if type(redis.pcall('zremrangebyscore', key, '-inf', now)) ==
    'table' then
  redis.call('del', key)
end
local all, role = 0, 0
for _, conn in ipairs(redis.call('zrange', key, 0, -1)) do
  local is_role = string.sub(conn, 1, #ARGV[4]) == ARGV[4]
  if is_role and ARGV[7] == '1' and
      string.sub(conn, 1, #ARGV[6]) ~= ARGV[6] then
    redis.call('zrem', key, conn)
  elseif conn ~= ARGV[1] then
    all = all + 1
    if is_role then role = role + 1 end
  end
end
if all >= tonumber(ARGV[3]) or role >= tonumber(ARGV[5]) then
  return 0
end
redis.call('zadd', key, now + ARGV[2], ARGV[1])
redis.call('expire', key, ARGV[2])
return 1

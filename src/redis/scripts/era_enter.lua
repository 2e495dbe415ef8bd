-- KEYS: era, holders. ARGV: run id, random, name we knew, longest lease, time
-- in which all are heard (msecs), who may hold leases. Returns the name.
local key, prefix = KEYS[1], ARGV[1] .. ':'
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local name = redis.pcall('hget', key, 'name')
if type(name) ~= 'string' or
    string.sub(name, 1, #prefix) ~= prefix then
  local wait = (name or ARGV[3] ~= '') and ARGV[4] or ARGV[5]
  name = prefix .. ARGV[2]
  redis.call('del', key)
  redis.call('hset', key, 'name', name)
  redis.call('hset', key, 'open_at', now + wait)
  redis.call('hset', key, 'soon', now + ARGV[5])
  redis.call('hset', key, 'late', now + ARGV[4])
end
if ARGV[3] == '' or ARGV[3] == name then return name end
local era = redis.call('hmget', key, 'open_at', 'late')
if tonumber(era[1]) > now then
  redis.call('hset', key, 'open_at', era[2])
  if #ARGV > 5 then redis.call('hset', key, 'known', 1) end
  for i = 6, #ARGV do
    redis.call('hsetnx', key, 'w:' .. ARGV[i], 0)
    if not redis.call('zscore', KEYS[2], ARGV[i]) then
      redis.call('zadd', KEYS[2],
        time[1] + math.ceil(ARGV[4] / 1000), ARGV[i])
    end
  end
end
return name

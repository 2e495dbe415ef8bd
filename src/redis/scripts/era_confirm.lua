-- KEYS: era. ARGV: name, worker id.
local key = KEYS[1]
if redis.call('hget', key, 'name') ~= ARGV[1] then return 0 end
redis.call('hset', key, 'w:' .. ARGV[2], 1)
if not redis.call('hget', key, 'known') then return 0 end
local era = redis.call('hgetall', key)
for i = 1, #era, 2 do
  if string.sub(era[i], 1, 2) == 'w:' and era[i + 1] == '0' then
    return 0
  end
end
redis.call('hset', key, 'open_at', redis.call('hget', key, 'soon'))
return 1

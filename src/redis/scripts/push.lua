-- KEYS: the list, who was rung for when. ARGV: ids. Those that still wait in
-- the list are not put there again, however often a sweep finds them; to look
-- for each in a list of 100,000 would keep Redis from everything else. So it
-- is noted beside the list, until who pops it takes the note away. A note
-- whose popper has died is believed while others wait, and for a while.
local now = redis.call('time')[1]
if redis.pcall('llen', KEYS[1]) == 0 then
  redis.pcall('del', KEYS[2])
else
  redis.pcall('zremrangebyscore', KEYS[2], '-inf',
    now - 300) -- seconds
end
for i = 1, #ARGV do
  if redis.pcall('zadd', KEYS[2], 'NX', now, ARGV[i]) ~= 0 then
    redis.pcall('lpush', KEYS[1], ARGV[i])
  end
end
return #ARGV

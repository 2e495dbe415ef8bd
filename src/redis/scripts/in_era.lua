-- KEYS[1] is the era; its name is ARGV[1], a lease lasts ARGV[2] seconds.  A
-- moment of opening that is too far away is of a clock that was put back.
local era = redis.call('hmget', KEYS[1], 'name', 'open_at')
if era[1] ~= ARGV[1] then return { 'era' } end
local time = redis.call('time')
local closed = tonumber(era[2]) -
  (time[1] * 1000 + math.floor(time[2] / 1000))
if closed > 0 and closed <= ARGV[2] * 2000 then
  return { 'closed', closed }
end

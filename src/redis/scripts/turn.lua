-- KEYS: turn, era. ARGV: worker id, msecs. 1: it is, or stays, ours.
local era = redis.pcall('hget', KEYS[2], 'name')
if type(era) ~= 'string' then era = '' end
local had = redis.pcall('get', KEYS[1])
if type(had) == 'string' then
  local of, who = string.match(had, '^(%S*) (%S+)$')
  if who and who ~= ARGV[1] and (of == era or of == '') then
    return 0
  end
end
redis.call('set', KEYS[1], era .. ' ' .. ARGV[1],
  'PX', ARGV[2])
return 1

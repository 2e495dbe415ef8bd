-- KEYS: tier, pin, session of each account.
local answer = {}
local function text(key)
  local value = redis.pcall('get', key)
  return type(value) == 'string' and value or ''
end
for i = 1, #KEYS, 3 do
  answer[#answer + 1] = text(KEYS[i])
  answer[#answer + 1] = text(KEYS[i + 1])
  answer[#answer + 1] = redis.call('pttl', KEYS[i + 2])
end
return answer

-- KEYS: sync:live. ARGV: accounts. Returns the positions of the others.
local found = {}
for i = 1, #ARGV do
  if redis.pcall('sismember', KEYS[1], ARGV[i]) == 0 then
    found[#found + 1] = i
  end
end
return found

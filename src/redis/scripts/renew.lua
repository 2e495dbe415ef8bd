-- KEYS: leases. ARGV: worker id, TTL. Returns the positions of the leases that
-- are not ours.
local lost, owners = {}, redis.call('mget', unpack(KEYS))
for i, key in ipairs(KEYS) do
  if owners[i] == ARGV[1] then
    redis.call('expire', key, ARGV[2])
  else
    lost[#lost + 1] = i
  end
end
return lost

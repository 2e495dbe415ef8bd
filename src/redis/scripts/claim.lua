-- KEYS: era, sync:live, sync:orphans, leases. ARGV: era, TTL, worker id,
-- "host:", how many are old, room for these, room for the others, name of a
-- heartbeat without its id, "1" when the ids are from sync:orphans. Returns
-- "done", positions won, positions left, and [position, owner] of leases of
-- this host.
-- An orphan is free, or will soon be: nobody hears of its owner any more. Who
-- comes from sync:orphans and is none leaves it.
-- @include in_era
local won, left, near = {}, {}, {}
local orphans, others, is_alive = {}, {}, {}
local n_old, room = tonumber(ARGV[5]), tonumber(ARGV[6])
local owners = redis.call('mget', unpack(KEYS, 4))
for i, owner in ipairs(owners) do
  local key, is_orphan = KEYS[i + 3], false
  local id = string.sub(key, -36)
  if i == n_old + 1 then room = tonumber(ARGV[7]) end
  if ARGV[9] == '1' and
      redis.pcall('sismember', KEYS[2], id) ~= 1 then
    owner = '' -- it is not live any more
  elseif not owner then
    if #won < room and redis.call('set', key, ARGV[3],
        'NX', 'EX', ARGV[2]) then
      won[#won + 1] = i
    else
      left[#left + 1] = i
      is_orphan = true
    end
  elseif owner == ARGV[3] then
    redis.call('expire', key, ARGV[2])
    won[#won + 1] = i
  else
    if string.sub(owner, 1, #ARGV[4]) == ARGV[4] then
      near[#near + 1] = i
      near[#near + 1] = owner
    end
    if is_alive[owner] == nil then
      is_alive[owner] = redis.call('exists',
        ARGV[8] .. owner) == 1
    end
    is_orphan = not is_alive[owner]
  end
  local list = is_orphan and orphans or others
  list[#list + 1] = id
end
if ARGV[9] == '1' then
  if #others > 0 then
    redis.call('srem', KEYS[3], unpack(others))
  end
elseif #orphans > 0 then
  redis.pcall('sadd', KEYS[3], unpack(orphans))
end
return { 'done', won, left, near }

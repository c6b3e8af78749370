-- The entries of one conversation's ledger that were sent last, at most so many.
local ledger, reach = unpack(KEYS)
local limit, step = tonumber(ARGV[1]), 1000

local found, start = {}, 0
while #found < limit do
  local fields = redis.call('ZREVRANGE', reach, start, start + step - 1)
  if #fields == 0 then
    break
  end
  local records = {}
  for _, field in ipairs(fields) do
    if string.sub(field, 1, 2) == 'r/' and #found + #records < limit then
      records[#records + 1] = field
    end
  end
  if #records > 0 then
    for _, entry in ipairs(redis.call('HMGET', ledger, unpack(records))) do
      found[#found + 1] = entry
    end
  end
  start = start + step
end
return found

-- Takes one conversation's commit, whole or not at all. Returns 1 if it is taken, now or before, else 0.
-- Payloads are opaque bytes: cjson would spoil empty lists and floats.
local header, window, states, ledger, reach, outbox = unpack(KEYS)

local cursor = 0
local function argument()
  cursor = cursor + 1
  return ARGV[cursor]
end

-- Its number of pairs, then the pairs.
local function group()
  local items = {}
  for index = 1, tonumber(argument()) do
    items[index] = { argument(), argument() }
  end
  return items
end

local expected, version, body, turns_seen = argument(), argument(), argument(), argument()
local trim_before, trim_limit = argument(), argument()
local holders, records, turns, scores, messages = group(), group(), group(), group(), group()
local changed, gone = group(), group()

local function applicable()
  -- Versions are compared as text: Lua's numbers are doubles.
  if (redis.call('HGET', header, 'version') or '0') ~= expected then
    return false
  end
  for _, record in ipairs(records) do
    if redis.call('HEXISTS', ledger, record[1]) == 1 then
      return false
    end
  end
  return true
end

-- Whether this very commit stands there already and only its reply was lost. What is gone from the outbox
-- was delivered since; what stands there otherwise was made by somebody else.
local function taken()
  if redis.call('HGET', header, 'version') ~= version or redis.call('HGET', header, 'body') ~= body then
    return false
  end
  for _, record in ipairs(records) do
    if redis.call('HGET', ledger, record[1]) ~= record[2] then
      return false
    end
  end
  for _, message in ipairs(messages) do
    local stored = redis.call('HGET', outbox, message[1])
    if stored and stored ~= message[2] then
      return false
    end
  end
  return true
end

if not applicable() then
  return taken() and 1 or 0
end

local function put(key, items)
  for _, pair in ipairs(items) do
    redis.call('HSET', key, pair[1], pair[2])
  end
end

-- Nothing undoes what a script has written when it breaks off. So what this user may not do, or a key of
-- another type does not take, is found here, where nothing changes: no such window, field or member exists. The
-- first is one that Redis refuses when its memory is full; after it, none is.
redis.call('SET', window .. '?', '', 'XX')
redis.call('ZADD', reach, 'XX', 0, '')
redis.call('ZREM', reach, '')
for _, key in ipairs({ states, ledger, outbox }) do
  redis.call('HDEL', key, '')
end
-- Before this commit's own entries are written, so that they outlive it whatever their age.
if trim_before ~= '' then
  local old = redis.call('ZRANGEBYSCORE', reach, '-inf', '(' .. trim_before, 'LIMIT', 0, trim_limit)
  if #old > 0 then
    redis.call('HDEL', ledger, unpack(old))
    redis.call('ZREM', reach, unpack(old))
  end
end
put(states, holders)
put(ledger, records)
put(ledger, turns)
for _, score in ipairs(scores) do
  redis.call('ZADD', reach, score[1], score[2])
end
for _, entry in ipairs(changed) do
  -- What was trimmed meanwhile, be it a moment ago, stays so: it would never be trimmed again.
  if redis.call('HEXISTS', ledger, entry[1]) == 1 then
    redis.call('HSET', ledger, entry[1], entry[2])
  end
end
for _, field in ipairs(gone) do
  if field[1] == 'states' then
    redis.call('HDEL', states, field[2])
  else
    redis.call('HDEL', ledger, field[2])
    redis.call('ZREM', reach, field[2])
  end
end
put(outbox, messages)
-- Last with the version: a commit that its HSETs end, which nothing can try, leaves the old one.
redis.call('SET', window, turns_seen)
redis.call('HSET', header, 'version', version, 'body', body)
return 1

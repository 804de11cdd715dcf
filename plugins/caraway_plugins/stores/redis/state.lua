-- Every operation of the store, each one atomic. KEYS are the parts of the store:
--   values    hash   key -> value of each live entry
--   index     zset   live keys, all of score 0: their order is that of their bytes
--   changes   zset   key -> revision of its last write or deletion
--   expiries  zset   live key -> when it expires
--   traces    zset   deleted key -> when its deletion is forgotten
--   counters  hash   revision, forgotten, format
--   (prefix)  what goes before the names of logs and of outcomes
-- ARGV: operation, now (empty: the server's time), token, and what the operation needs.
-- A write that is sent again after a lost connection has the token of the first attempt, and
-- gets the outcome of that one.
local values, index, changes, expiries, traces, counters, prefix = unpack(KEYS)
local operation, given_now, token = ARGV[1], ARGV[2], ARGV[3]
local TRACE_KEPT_S, OUTCOME_KEPT_S = 3600, 120
local SWEPT_AT_ONCE, LOOKED_AT_ONCE = 256, 4096

local now = tonumber(given_now)
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) + tonumber(time[2]) / 1000000
end

local function text(number)
  return string.format('%.6f', number)
end

local function counter(name)
  return tonumber(redis.call('HGET', counters, name) or 0)
end

local function revision_of(key)
  return tonumber(redis.call('ZSCORE', changes, key))
end

local function live(key)
  local value = redis.call('HGET', values, key)
  if not value then return nil end
  local expires_at = redis.call('ZSCORE', expiries, key)
  if expires_at and tonumber(expires_at) <= now then return nil end
  return value
end

local function delete(key)
  local revision = redis.call('HINCRBY', counters, 'revision', 1)
  redis.call('HDEL', values, key)
  redis.call('ZREM', index, key)
  redis.call('ZREM', expiries, key)
  redis.call('ZADD', changes, revision, key)
  redis.call('ZADD', traces, text(now + TRACE_KEPT_S), key)
  return revision
end

local function put(key, value, ttl)
  local revision = redis.call('HINCRBY', counters, 'revision', 1)
  redis.call('HSET', values, key, value)
  redis.call('ZADD', index, 0, key)
  redis.call('ZADD', changes, revision, key)
  redis.call('ZREM', traces, key)
  if ttl == '' then
    redis.call('ZREM', expiries, key)
  else
    redis.call('ZADD', expiries, text(now + tonumber(ttl)), key)
  end
  return revision
end

-- Expiry is a deletion like any other, with a revision and a trace.
local function sweep()
  local due = redis.call('ZRANGEBYSCORE', expiries, '-inf', text(now), 'LIMIT', 0, SWEPT_AT_ONCE)
  for _, key in ipairs(due) do delete(key) end
  local old = redis.call('ZRANGEBYSCORE', traces, '-inf', text(now), 'LIMIT', 0, SWEPT_AT_ONCE)
  for _, key in ipairs(old) do
    if revision_of(key) > counter('forgotten') then
      redis.call('HSET', counters, 'forgotten', redis.call('ZSCORE', changes, key))
    end
    redis.call('ZREM', changes, key)
    redis.call('ZREM', traces, key)
  end
end

local function once(write)
  local outcome = prefix .. 'outcome:' .. token
  local known = redis.call('GET', outcome)
  if known then return tonumber(known) end
  local result = write()
  redis.call('SET', outcome, result, 'EX', OUTCOME_KEPT_S)
  return result
end

local function starts_with(key, wanted)
  return string.sub(key, 1, #wanted) == wanted
end

local operations = {}

function operations.get(key)
  local value = live(key)
  return value and { value, revision_of(key) } or {}
end

function operations.revisions(...)
  local found = {}
  for place, key in ipairs({ ... }) do
    found[place] = live(key) and revision_of(key) or 0
  end
  return found
end

function operations.scan(wanted, high)
  local low = wanted == '' and '-' or '[' .. wanted
  high = high == '' and '+' or '(' .. high
  local found = {}
  for _, key in ipairs(redis.call('ZRANGEBYLEX', index, low, high)) do
    local value = live(key)
    if value then found[#found + 1] = { key, value, revision_of(key) } end
  end
  return found
end

-- An empty value deletes; expected `absent` asks for no entry. Returns 0 when refused.
function operations.compare_and_set(key, value, expected, ttl)
  return once(function()
    local standing = live(key) and redis.call('ZSCORE', changes, key) or 'absent'
    if standing ~= expected then return 0 end
    if value == '' then return delete(key) end
    return put(key, value, ttl)
  end)
end

function operations.append(log, record)
  return once(function()
    return redis.call('RPUSH', prefix .. 'log:' .. log, record) - 1
  end)
end

function operations.read_log(log, first, last)
  return redis.call('LRANGE', prefix .. 'log:' .. log, first, last)
end

function operations.revision()
  return counter('revision')
end

-- Looks at a bounded number of changes at once: `upto` says how far.
function operations.changes(wanted, after, limit)
  local upto, found = counter('revision'), {}
  local changed = redis.call(
    'ZRANGEBYSCORE', changes, '(' .. after, '+inf', 'LIMIT', 0, LOOKED_AT_ONCE)
  for place, key in ipairs(changed) do
    if starts_with(key, wanted) then
      local value = live(key)
      -- One that expired but is not swept yet is told when it is.
      if value or redis.call('HEXISTS', values, key) == 0 then
        found[#found + 1] = { key, value or '', revision_of(key) }
      end
    end
    if #found == tonumber(limit) or place == LOOKED_AT_ONCE then
      upto = revision_of(key)
      break
    end
  end
  return { upto, counter('forgotten'), found }
end

-- Marks the store with the format of this version, or returns the format that it has.
function operations.format(format)
  redis.call('HSETNX', counters, 'format', format)
  return redis.call('HGET', counters, 'format')
end

sweep()
return operations[operation](unpack(ARGV, 4))

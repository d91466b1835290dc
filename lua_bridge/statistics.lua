-- For the other parts: count_message forget_counts TABLES
--
-- Counting: what tshark -z and the Tools menu show. Everything is counted once, when a packet is first read.

local MAX_COUNTED = 100000
local COUNTS, counted_keys

function forget_counts()
  COUNTS, counted_keys = {messages = 0, kinds = {}, keys = {}, queries = {}, faults = {}}, 0
end

forget_counts()

local function count_key(key, v)
  local row = COUNTS.keys[key]
  if not row then
    if counted_keys >= MAX_COUNTED then key, row = "(more keys)", COUNTS.keys["(more keys)"] end
    if not row then
      row = {put = 0, del = 0, query = 0, reply = 0, bytes = 0}
      COUNTS.keys[key] = row
      counted_keys = counted_keys + 1
    end
  end
  local inner = v.body
  local column = inner and (v.record == "response" and "reply" or inner.record)
  if row[column] then row[column] = row[column] + 1 end
  if inner and inner.record == "reply" then inner = inner.body end
  row.bytes = row.bytes + (inner and inner.data_end and inner.data_end - inner.data or 0)
end

local HAS_KEY = {push = true, request = true, response = true}

function count_message(v, kind, about, facts, key)
  local kinds = COUNTS.kinds
  kind = about or kind
  COUNTS.messages = COUNTS.messages + 1
  kinds[kind] = (kinds[kind] or 0) + 1
  if v.fault then COUNTS.faults[v.fault] = (COUNTS.faults[v.fault] or 0) + 1 end
  if HAS_KEY[v.record] then count_key(key or "(unresolved)", v) end
  if v.record == "request" and facts and facts.query then
    facts.query.id, facts.query.name = v.request_id, key
    if #COUNTS.queries < MAX_COUNTED then COUNTS.queries[#COUNTS.queries + 1] = facts.query end
  elseif v.record == "response" and facts and facts.query then
    local query = facts.query
    query.replies = (query.replies or 0) + 1
    query.first_after = query.first_after or facts.elapsed
  elseif v.record == "response_final" and facts and facts.query then
    facts.query.final_after = facts.elapsed
  end
end

-- Tables as text ---------------------------------------------------------------------------------

local function sorted_keys(t, before)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys, before)
  return keys
end

local RULER = string.rep("=", 72) .. "\n"

local function stat_text()
  local lines = {RULER, "Zenoh: ", COUNTS.messages, " messages\n", RULER}
  local kinds = COUNTS.kinds
  local function more(a, b) return kinds[a] > kinds[b] or kinds[a] == kinds[b] and a < b end
  for _, kind in ipairs(sorted_keys(kinds, more)) do
    lines[#lines + 1] = string.format("%-28s %10d\n", kind, kinds[kind])
  end
  for _, kind in ipairs(sorted_keys(COUNTS.faults)) do
    lines[#lines + 1] = string.format("fault %-22s %10d\n", kind, COUNTS.faults[kind])
  end
  lines[#lines + 1] = RULER
  return concat(lines)
end

local function keys_text()
  local lines, keys = {RULER, "Zenoh keys\n", RULER}, COUNTS.keys
  lines[#lines + 1] = string.format("%7s %7s %7s %7s %11s  %s\n", "PUT", "DEL", "QUERY", "REPLY", "bytes", "key")
  local function busier(a, b)
    return keys[a].bytes > keys[b].bytes or keys[a].bytes == keys[b].bytes and a < b
  end
  for _, key in ipairs(sorted_keys(keys, busier)) do
    local row = keys[key]
    lines[#lines + 1] = string.format("%7d %7d %7d %7d %11d  %s\n", row.put, row.del, row.query, row.reply,
      row.bytes, shown(key))
  end
  lines[#lines + 1] = RULER
  return concat(lines)
end

local function milliseconds(value)
  return value and string.format("%.3f", value * 1000) or "-"
end

local function queries_text()
  local lines = {RULER, "Zenoh queries (times in ms after the request)\n", RULER}
  lines[#lines + 1] = string.format("%8s %8s %7s %11s %11s  %s\n", "packet", "request", "replies", "first reply",
    "final", "key")
  for _, query in ipairs(COUNTS.queries) do
    lines[#lines + 1] = string.format("%8d %8s %7d %11s %11s  %s\n", query.frame, "#" .. query.id, query.replies or 0,
      milliseconds(query.first_after), milliseconds(query.final_after), shown(query.name or "(unresolved)"))
  end
  lines[#lines + 1] = RULER
  return concat(lines)
end

TABLES = {
  {"stat", "Messages", stat_text},
  {"keys", "Keys", keys_text},
  {"queries", "Queries", queries_text},
}

-- For the other parts: dissect_datagram dissect_websocket
--
-- Datagrams, messages of WebSockets, and scouting.

-- A datagram, or a message of a WebSocket, of a link that is Zenoh.
local function take_datagram(holder, direction, tree, n, missing)
  local link = holder.link
  local entry = remember(remember_call(n), {cut = missing > 0 and "truncated" or nil})
  show_batch(tree, entry, 0, n, 0, link, direction, framing_of(link, direction))
end

-- SCOUT and HELLO: one message, and nothing after it.
local function take_scouting(tree, n, missing, entry)
  local root = add(tree, proto, range(TVB, 0, n))
  BATCH.link, BATCH.direction, BATCH.entry, BATCH.ordinal, BATCH.lines, BATCH.line = nil, 1, entry, 0, 0, nil
  BATCH.cut = missing > 0 and "truncated" or nil
  local reader = FAMILY.scouting[byte(B, 1) % 32]
  ONLY_END = n
  local _, wrong = attempt(reader, 0, n, root)
  if wrong then show_fault(root, wrong, n, BATCH.cut) end
  ONLY_END = nil
  append_text(root, ": " .. shortened(BATCH.line))
end

-- Whether a scouting message is good, and what it says.
local function look_scouting(s)
  local reader = FAMILY.scouting[byte(s, 1) % 32]
  if not reader or #s < 3 then return nil end
  local b, tvb, seen = B, TVB, SEEN
  B, TVB, SEEN = s, nil, {}
  local stop = attempt(reader, 0, #s, nil)
  local v = SEEN[1]
  B, TVB, SEEN = b, tvb, seen
  return v, stop
end

local function is_hello(s)
  if #s < 4 or byte(s, 2) ~= VERSION_BYTE then return false end
  if byte(s, 1) % 32 ~= 2 or floor(byte(s, 1) / 64) % 2 ~= 0 then return false end
  local v, stop = look_scouting(s)
  if stop ~= #s or floor(byte(s, 3) / 4) % 4 ~= 0 then return false end
  for _, locator in ipairs(v.locators or {}) do
    if not find(locator, "^[a-z][a-z0-9-]*/.+") or not utf8_valid(locator) then return false end
  end
  return true
end

-- Whether a datagram is SCOUT or HELLO; on a scouting port a damaged or cut one is too.
local function is_scouting(s, on_port, missing)
  if is_hello(s) then return true end
  if not on_port or #s < 3 or byte(s, 2) ~= VERSION_BYTE then return false end
  local v, stop = look_scouting(s)
  return v ~= nil and (stop ~= nil or missing > 0)
end

-- True when a datagram is Zenoh beyond doubt: an INIT or JOIN to the last byte, or on a Zenoh port a FRAME.
local function proves(s, known)
  for _, framing in ipairs(known and FRAMINGS or {"plain"}) do
    local found, good = look_batch(s, 0, #s, framing)
    local first = found[1]
    if good and first then
      local name = first.record
      if (name == "init" or name == "join") and first.version == VERSION_BYTE then return true, framing end
      local evidence = {points = 0, batches = 0, numbers = {}}
      if known and name == "frame" and prove(evidence, s, 0, #s, framing, no_opinion) and evidence.points >= 3 then
        return true, framing
      end
    end
  end
  return false
end

local function is_quic(s)
  local version = sub(s, 2, 5)
  return #s >= 1200 and byte(s, 1) >= 0xC0 and (version == "\0\0\0\1" or version == "\107\51\67\207")
end

local function is_multicast(address)
  local first = tonumber(string.match(address, "^(%d+)%."))
  if first then return first >= 224 and first < 240 end
  return find(string.lower(address), "^ff%x%x:") ~= nil
end

local function datagram_link(pinfo)
  local from, to = ends_of(pinfo)
  if not is_multicast(tostring(pinfo.dst)) then return holder_of(pinfo, "udp") end
  local key = "group " .. from .. " " .. to
  LINKS[key] = LINKS[key] or {group = true}
  return LINKS[key], 1
end

function dissect_datagram(tvb, pinfo, tree, known, scouting)
  local n = tvb:len()
  if n == 0 or HANDING then return 0 end
  local visit = begin(pinfo, tree)
  local s = tvb:raw(0, n)
  B, TVB = s, tvb
  if not visit.first then
    local call = remembered(n)
    if not call then return 0 end
    local entry = call[1]
    if entry.scouting then take_scouting(tree, n, entry.missing, entry) else show_batch(tree, entry, 0, n, 0) end
    show_columns(pinfo)
    return n
  end
  local missing = tvb:reported_len() - n
  local holder, direction = datagram_link(pinfo)
  if holder.quic or not holder.link and known and is_quic(s) then
    holder.quic = true
    return 0
  end
  if not holder.link and is_scouting(s, scouting, missing) then
    take_scouting(tree, n, missing, remember(remember_call(n), {scouting = true, missing = missing}))
    show_columns(pinfo)
    return n
  end
  if holder.link and n > 4 and new_handshake(holder.link, s, 0) and opens(s, 0, n) then
    close_link(holder.link)
    holder.link = nil
  end
  if not holder.link then
    local good, framing = proves(s, known)
    if not good then return 0 end
    become_zenoh(holder, false, framing, holder.group)
  end
  take_datagram(holder, direction, tree, n, missing)
  show_columns(pinfo)
  return n
end

-- A message of a WebSocket is a batch without size; the stream keeps order.
function dissect_websocket(tvb, pinfo, tree)
  local n = tvb:len()
  if n == 0 or HANDING then return 0 end
  local visit = begin(pinfo, tree)
  local s = tvb:raw(0, n)
  B, TVB = s, tvb
  if not visit.first then
    local call = remembered(n)
    if not call then return 0 end
    show_batch(tree, call[1], 0, n, 0)
    show_columns(pinfo)
    return n
  end
  local holder, direction = holder_of(pinfo, "ws")
  if not holder.link then
    local _, good = look(s, 0, n, FAMILY.transport)
    if not (good and (known_port(pinfo, PORTS.tcp) or opens(s, 0, n))) then return 0 end
    become_zenoh(holder, true, "plain")
  end
  take_datagram(holder, direction, tree, n, 0)
  show_columns(pinfo)
  return n
end

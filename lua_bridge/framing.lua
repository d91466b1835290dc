-- For the other parts: PREFIX FRAMINGS MAX_EMPTY MAX_UNIT MAX_BATCH VERSION_BYTE LOWLATENCY LAST_CLOSE look look_batch
--   number_at size_at plausible_header plausible follow prove no_opinion fits_of find_batch fills opens
--
-- Where batches begin and end, and whether some bytes are Zenoh at all: looking without showing.

PREFIX = {plain = 2, compressed = 2, lowlatency = 4}
FRAMINGS = {"plain", "lowlatency", "compressed"} -- in the order in which they are tried
MAX_UNIT = 131072 -- no low-latency unit is larger than a batch; anything above is no size
MAX_BATCH = 65535
VERSION_BYTE = 9

LOWLATENCY = {}
for id, reader in pairs(FAMILY.transport) do LOWLATENCY[id] = reader end
for id, reader in pairs(FAMILY.network) do LOWLATENCY[id] = reader end

-- Reads messages of the bytes p to e of a string; returns them, and whether they are good to the end.
function look(bytes_of, p, e, family)
  local b, tvb, seen, opened = B, TVB, SEEN, OPEN
  B, TVB, SEEN, OPEN = bytes_of, nil, {}, nil
  local stop, wrong = attempt(messages, p, e, nil, family)
  local found = SEEN
  B, TVB, SEEN, OPEN = b, tvb, seen, opened
  return found, stop == e, wrong
end

-- The messages of a batch of some framing whose content is p to e.
function look_batch(bytes_of, p, e, framing)
  if framing == "compressed" then
    if p >= e then return {}, false end
    local flags = byte(bytes_of, p + 1)
    if flags % 2 == 1 then
      local plain = lz4_block(sub(bytes_of, p + 2, e), MAX_BATCH)
      if not plain then return {}, false end
      return look(plain, 0, #plain, FAMILY.transport)
    end
    return look(bytes_of, p + 1, e, FAMILY.transport)
  end
  return look(bytes_of, p, e, framing == "lowlatency" and LOWLATENCY or FAMILY.transport)
end

function number_at(s, p, width)
  local value, scale = 0, 1
  for i = 1, width do
    value, scale = value + byte(s, p + i) * scale, scale * 256
  end
  return value
end

-- The whole length of the batch at p, prefix included; nil when the prefix is not all there.
function size_at(s, p, framing)
  local prefix = PREFIX[framing]
  if #s < p + prefix then return nil end
  return prefix + number_at(s, p, prefix)
end

MAX_EMPTY = 4 -- empty batches in a row; nodes send one at a time
LAST_CLOSE = {{"\2\0\3", "plain"}, {"\3\0\0\3", "compressed"}}

function plausible_header(x)
  local kind = x % 32
  if kind == 4 then return floor(x / 32) % 4 == 0 end
  if kind == 3 or kind == 5 then return floor(x / 64) % 2 == 0 end
  return kind == 1 or kind == 2 or kind == 6 or kind == 7
end

-- Whether a batch may begin at p; nil when too little is there to tell.
function plausible(s, p, framing)
  local size = size_at(s, p, framing)
  if not size then return nil end
  local start = p + PREFIX[framing]
  if framing == "lowlatency" then
    if size > MAX_UNIT or size == 4 then return false end
    if start >= #s then return nil end
    local x = byte(s, start + 1)
    return x % 32 >= 0x19 or x == 0x03 or x == 0x04 or x == 0x23
  end
  if size == 2 then return framing == "plain" end -- an empty batch
  if framing == "compressed" then
    if start >= #s then return nil end
    if byte(s, start + 1) > 1 then return false end
    start = start + 1
    if start >= #s then return nil end
    return byte(s, start) == 1 or plausible_header(byte(s, start + 1))
  end
  if start >= #s then return nil end
  return plausible_header(byte(s, start + 1))
end

-- True when plausible batches follow each other from p, up to the end of the bytes or a few of them.
function follow(s, p, framing)
  for _ = 1, 4 do
    if p == #s then return true end
    local answer = plausible(s, p, framing)
    if answer ~= true then return answer == nil end
    p = p + size_at(s, p, framing)
    if p > #s then return true end
  end
  return true
end

local WORTH = {init = 8, open = 3, join = 8, frame = 3, fragment = 1}
local NETWORK_RECORD = {}
for _, name in ipairs({"push", "request", "response", "response_final", "declare", "interest", "network_oam"}) do
  NETWORK_RECORD[name] = true
end

local function at_wrap(sn)
  return sn == 0x7F or sn == 0x7E or sn == 0x3FFF or sn == 0x3FFE or sn == 0x0FFFFFFF or sn == 0x0FFFFFFE
    or sn == 0xFFFFFFFF or sn == 0xFFFFFFFE
end

-- Adds what a batch proves; false when it is bad or does not go on from the last.
function prove(evidence, s, p, e, framing, fits)
  local found, good = look_batch(s, p, e, framing)
  if not good then return false end
  for i, v in ipairs(found) do
    local name = v.record
    if framing == "lowlatency" or not NETWORK_RECORD[name] then -- those inside a FRAME count with it
      if name == "transport_oam" then return false end
      local points = WORTH[name] or (NETWORK_RECORD[name] and 2 or 1)
      local following = found[i + 1]
      if name == "frame" and not (following and NETWORK_RECORD[following.record]) then points = 0 end
      if name == "frame" or name == "fragment" then
        local lane = lane_key({qos = true}, v)
        local last = evidence.numbers[lane]
        evidence.numbers[lane] = v.sn
        local verdict
        if not last then
          verdict = fits(v)
          evidence.continues = evidence.continues or verdict > 0
        elseif v.sn - last == 1 or v.sn - last == 2 or at_wrap(last) and v.sn <= 1 then
          verdict = 1
        else
          return false
        end
        if verdict < 0 then return false end
        points = points + 3 * verdict
      end
      evidence.points = evidence.points + points
    end
  end
  evidence.batches = evidence.batches + 1
  return true
end

-- True when the batches from p on are Zenoh: two good ones, or one whose numbers go on from what was seen.
local function proof(s, p, framing, fits, enough)
  local evidence, empty = {points = 0, batches = 0, numbers = {}, continues = false}, 0
  while evidence.points < enough or not (evidence.batches >= 2 or evidence.continues) do
    local size = size_at(s, p, framing)
    if not size or p + size > #s then return false end
    if size > PREFIX[framing] then
      if not prove(evidence, s, p + PREFIX[framing], p + size, framing, fits) then return false end
    elseif framing ~= "plain" or empty == MAX_EMPTY then
      return false
    else
      empty = empty + 1
    end
    p = p + size
    if p == #s then break end
  end
  return evidence.points >= enough and (evidence.batches >= 2 or evidence.continues)
end

function no_opinion() return 0 end

-- Whether the number of a FRAME goes on from those seen in this direction: 1 yes, 0 cannot tell, -1 no.
function fits_of(link, direction)
  local session, own = link.session, side(link, direction)
  return function(v)
    if not v.sn or v.sn > session.mask then return -1 end
    local lane = own.lanes[lane_key(session, v)]
    if not lane or not lane.last or session.mask < 0x3FFF then return 0 end
    return (v.sn - lane.last) % (session.mask + 1) < 0x1000 and 1 or 0
  end
end

-- The first position from which batches can be followed, and their framing.
function find_batch(s, from, framings, fits, enough)
  for p = from, #s - 1 do
    for _, framing in ipairs(framings) do -- an empty batch proves nothing: zeros would be many of them
      local some = plausible(s, p, framing) and size_at(s, p, framing) > PREFIX[framing]
      if some and follow(s, p, framing) and proof(s, p, framing, fits, enough) then return p, framing end
    end
  end
end

-- True when the bytes are whole good batches to the last one.
function fills(s, framing)
  local p, count = 0, 0
  while p < #s do
    local size = size_at(s, p, framing)
    if not size or p + size > #s or not plausible(s, p, framing) then return false end
    local found, good = look_batch(s, p + PREFIX[framing], p + size, framing)
    if not good then return false end
    for _, v in ipairs(found) do
      if v.record == "transport_oam" then return false end
    end
    p, count = p + size, count + 1
  end
  return count > 0
end

-- True for an INIT to the last byte.
function opens(s, p, e)
  local found, good = look(s, p, e, FAMILY.transport)
  return good and #found == 1 and found[1].record == "init" and found[1].version == VERSION_BYTE
end

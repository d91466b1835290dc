-- For the other parts: dissect_stream
--
-- Streams: batches in the segments of TCP and the records of TLS.
--
-- Wireshark gives segments in order, some put together because more was asked for; of those that the capture lacks
-- it says nothing. So the bytes must tell: a batch that was asked for must come back as it was, and every other
-- segment must begin with a batch that goes on from the last one.

-- The framing and size of the next batch; the third result says that it cannot be one.
local function next_batch(link, direction, s, p)
  local framing = framing_of(link, direction)
  local size = size_at(s, p, framing)
  if framing == "lowlatency" and size and size > MAX_UNIT then
    for _, pair in ipairs(LAST_CLOSE) do
      if sub(s, p + 1, p + #pair[1]) == pair[1] then return pair[2], size_at(s, p, pair[2]) end
    end
    return framing, nil, true
  end
  return framing, size
end

-- Bytes of the stream are missing: ``left`` are still to come of the batch that was cut.
local function skip_missing(state, left, missing)
  state.lost, state.skip, state.tried = left < missing, left - missing, 0
  state.told = left >= missing and left > 0
end

local UNDECIDED = 262144 -- bytes that are kept while nobody knows where batches begin

local function lose(state)
  state.lost, state.told, state.tried, state.skip = true, false, 0, 0
end

-- How the first message of a plain batch goes on: 1 with the next sequence number, 0 without one, -1 not at all.
local function goes_on(link, direction, s, p)
  local x = byte(s, p + 3)
  if not x then return 0 end
  if not plausible_header(x) then return -1 end
  local kind = x % 32
  if kind ~= 5 and kind ~= 6 then return 0 end
  local _, _, lo, hi = pcall(halves, p + 3, #s, 64)
  local own, size = side(link, direction), link.session.mask + 1
  if not hi or hi > 0 then return 0 end
  if own.initial_sn and (lo - own.initial_sn) % size <= WINDOW then return 1 end -- a lane of its own
  for _, lane in pairs(own.lanes) do
    if lane.last and (lo - lane.last) % size <= WINDOW then return 1 end
  end
  return next(own.lanes) and -1 or 0
end

-- True for a segment that was sent again, of which Wireshark does not always say so.
local function sent_again(link, direction, s)
  local size = size_at(s, 0, "plain")
  if not size or size < 4 or size > #s or framing_of(link, direction) ~= "plain" then return false end
  local kind = byte(s, 3) % 32
  if kind ~= 5 and kind ~= 6 then return false end
  local good, _, sn, hi = pcall(halves, 3, size, 64)
  if not good or hi > 0 then return false end
  local mark = mark_of(s, 0, size)
  for _, lane in pairs(side(link, direction).lanes) do
    if lane.recent[sn] == mark and lane.mask > 0x7F then return true end
  end
  return false
end

-- Whether bytes that begin a segment begin a batch, as far as they can tell.
local function begins_batch(link, direction, s)
  local p = 0
  local framing, size, no_size = next_batch(link, direction, s, p)
  while framing == "plain" and size == 2 and p < 2 * MAX_EMPTY do -- empty batches prove nothing
    p = p + 2
    framing, size, no_size = next_batch(link, direction, s, p)
  end
  if not size or no_size then return not no_size end
  if framing == "plain" then
    if size == 2 then return false end
    local verdict = goes_on(link, direction, s, p)
    if verdict == 1 or verdict == 0 and (p + size <= #s or size < 4096) then return true end -- others are short
  elseif plausible(s, p, framing) ~= false then
    return true
  end
  return p + size <= #s and follow(s, p + size, framing)
end

-- What came back is what was asked for: the same bytes, and more.
local function as_asked(asked, s)
  return #s >= asked.length and (not asked.exactly or #s == asked.exactly) and sub(s, 1, #asked.head) == asked.head
end

-- Where the batch begins that is not all there, if one does not.
local function unfinished(link, direction, s, p)
  while p < #s do
    local _, size = next_batch(link, direction, s, p)
    if not size or p + size > #s then return p end
    p = p + size
  end
end

-- The call under way: what is read, how far, and what is remembered of it. One table, as there are very many calls.
local CALL = {}

local function entry_of(values)
  CALL.memory = CALL.memory or remember_call(CALL.n)
  return remember(CALL.memory, values)
end

local function undecoded(stop)
  local state = CALL.state
  local entry = entry_of({at = CALL.p, stop = stop, undecoded = state.told and "told" or "gap"})
  show_batch(CALL.tree, entry, CALL.p, stop, 0, CALL.link, CALL.direction, "plain")
  state.told = true
  CALL.p = stop
end

-- Asks for ``count`` more bytes, or any; false when there are none to be had.
local function more(count)
  local pinfo, p, n, s = CALL.pinfo, CALL.p, CALL.n, CALL.s
  if CALL.missing > 0 or pinfo.can_desegment == 0 then return false end
  pinfo.desegment_offset, pinfo.desegment_len = p, count or DESEGMENT_ONE_MORE_SEGMENT
  CALL.state.asked = {length = n - p, exactly = count and n - p + count, head = sub(s, p + 1, min(n, p + 64))}
  if CALL.memory then CALL.memory.asks, CALL.memory.more = p, pinfo.desegment_len end
  return true
end

-- Wireshark gives the same bytes from their beginning again when a batch that began before the newest segment is
-- still not whole. So nothing is read until the unfinished batch is one that begins in it.
local function too_early(from)
  local tail = CALL.before > 0 and unfinished(CALL.link, CALL.direction, CALL.s, from)
  return tail and tail <= CALL.before and more()
end

-- Looks for the next batch; false when more bytes must come first, or there is none.
local function find_next()
  local link, direction, state, s, p, n = CALL.link, CALL.direction, CALL.state, CALL.s, CALL.p, CALL.n
  local sure = link.handshake or link.framing
  local at, framing
  if n - p >= 1.3 * (state.tried or 0) then
    state.tried = n - p
    local framings = sure and {framing_of(link, direction)} or FRAMINGS
    at, framing = find_batch(s, p, framings, fits_of(link, direction), 4)
  end
  if not at then
    if n - p > UNDECIDED or not more() then
      undecoded(n)
      state.tried = 0
    end
    return false
  end
  if p == 0 and too_early(at) then
    state.tried = 0
    return false
  end
  if not sure and framing ~= "plain" then link.framing = framing end
  if at > p then undecoded(at) end
  state.lost, state.told, state.tried = false, false, 0
  return true
end

-- Reads the next batch; false when it is not all there.
local function read_next()
  local link, direction, state, s, p, n = CALL.link, CALL.direction, CALL.state, CALL.s, CALL.p, CALL.n
  local framing, size, no_size = next_batch(link, direction, s, p)
  if no_size then
    state.lost, state.tried = true, 0
    return true
  end
  if not size or p + size > n then
    local left = size and size - (n - p)
    if not more(left) then
      local prefix = min(PREFIX[framing], n - p)
      show_batch(CALL.tree, entry_of({at = p, stop = n, cut = "gap"}), p, n, prefix, link, direction, framing)
      skip_missing(state, left or 0, CALL.missing)
    end
    return false
  end
  local entry = entry_of({at = p, stop = p + size})
  local wrong = show_batch(CALL.tree, entry, p, p + size, PREFIX[framing], link, direction, framing)
  if wrong and framing ~= "compressed" and not follow(s, p + size, framing) then
    -- the size itself may be damaged: the next batch is looked for from the fault on
    CALL.p, state.lost, state.told, state.tried = wrong, true, true, 0
  else
    CALL.p = p + size
  end
  return true
end

-- Whether the bytes are those that must come next; notes how many were there when any more were asked for.
local function check_place()
  local state, s = CALL.state, CALL.s
  local asked = state.asked
  state.asked, CALL.before = nil, 0
  if asked then
    if not as_asked(asked, s) then
      lose(state)
    elseif not asked.exactly then
      CALL.before = asked.length
    end
  elseif not state.lost and (state.skip or 0) <= 0 and not begins_batch(CALL.link, CALL.direction, s) then
    lose(state)
  end
end

-- Reads the whole batches of a stream's bytes; what is left is asked for again with more bytes behind it.
local function drain(holder, direction, s, tree, pinfo, missing)
  local state = holder.streams[direction]
  CALL.link, CALL.direction, CALL.state, CALL.memory = holder.link, direction, state, nil
  CALL.s, CALL.p, CALL.n, CALL.missing, CALL.tree, CALL.pinfo = s, 0, #s, missing, tree, pinfo
  check_place()
  if not state.lost and too_early(0) then return end
  if (state.skip or 0) > 0 then
    local count = min(state.skip, #s)
    state.skip = state.skip - count
    undecoded(count)
  end
  while CALL.p < CALL.n do
    if state.lost and not find_next() then return end
    if not read_next() then return end
  end
  if missing > 0 then skip_missing(state, 0, missing) end
end

local function replay(tree, pinfo, call)
  for _, entry in ipairs(call) do
    local prefix = entry.undecoded and 0 or min(PREFIX[entry.mode.framing], entry.stop - entry.at)
    show_batch(tree, entry, entry.at, entry.stop, prefix)
  end
  if call.asks then pinfo.desegment_offset, pinfo.desegment_len = call.asks, call.more end
end

-- Whether a stream is Zenoh: true, false, or nil when more bytes must tell.
local function decide(holder, state, s, known)
  local start = sub(s, 1, 4)
  if start == "GET " or start == "HTTP" or byte(s, 1) == 0x16 and byte(s, 2) == 0x03 then return false end
  local size = size_at(s, 0, "plain")
  if size and size <= #s and opens(s, 2, size) then
    become_zenoh(holder, true, "plain")
    return true
  end
  if not known then return false end
  for _, framing in ipairs(FRAMINGS) do
    if fills(s, framing) then
      become_zenoh(holder, true, framing)
      return true
    end
  end
  if #s > UNDECIDED then return false end
  if #s < 1.3 * (state.tried or 0) then return nil end
  state.tried = #s
  local at, framing = find_batch(s, 0, FRAMINGS, no_opinion, 4)
  if not at then return nil end
  become_zenoh(holder, true, framing)
  if unfinished(holder.link, 1, sub(s, 1, at), 0) then -- what is before it is not whole batches
    for direction = 1, 2 do holder.streams[direction].lost = true end
  end
  state.tried = 0
  return true
end

-- True when an INIT syn begins another connection between the same ends.
local function begins_again(holder, direction, s)
  if byte(s, 3) % 64 ~= 1 or byte(s, 4) ~= VERSION_BYTE then return false end
  local link = holder.link
  return holder.other or link and (link.zids[direction] or link.switched[1] or link.switched[2] or link.closed)
end

-- Bytes of a stream. ``known``: on a port of Zenoh. Returns how many are ours, 0 for none.
function dissect_stream(tvb, pinfo, tree, kind, known)
  local n = tvb:len()
  if n == 0 or HANDING then return 0 end
  local holder, direction = holder_of(pinfo, kind)
  local visit = begin(pinfo, tree)
  local s = tvb:raw(0, n)
  B, TVB = s, tvb
  if not visit.first then
    local call = remembered(n)
    if not call then return holder.link and n or 0 end
    replay(tree, pinfo, call)
    show_columns(pinfo)
    return n
  end
  local missing = tvb:reported_len() - n
  local first = size_at(s, 0, "plain")
  if first and first > 4 and first <= n and begins_again(holder, direction, s) and opens(s, 2, first) then
    if holder.link then close_link(holder.link) end
    holder.link, holder.other, holder.streams = nil, false, {{}, {}}
  end
  if not holder.link then
    local answer = not holder.other and decide(holder, holder.streams[direction], s, known)
    if answer == false then
      holder.other = true
      return 0
    elseif answer == nil then
      if known ~= true or pinfo.can_desegment == 0 or missing > 0 then return 0 end
      pinfo.desegment_offset, pinfo.desegment_len = 0, DESEGMENT_ONE_MORE_SEGMENT
      holder.streams[direction].asked = {length = n, head = sub(s, 1, min(n, 64))}
      return n
    end
  end
  if not holder.streams[direction].asked and sent_again(holder.link, direction, s) then return n end
  drain(holder, direction, s, tree, pinfo, missing)
  show_columns(pinfo)
  return n
end

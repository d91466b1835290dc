-- For the other parts: PORTS known_port dissect_stream dissect_datagram dissect_websocket dissect_serial
--   forget
--
-- Links: where batches begin and end on streams and in datagrams, and whether some bytes are Zenoh at all.

local PREFIX = {plain = 2, compressed = 2, lowlatency = 4}
local FRAMINGS = {"plain", "lowlatency", "compressed"} -- in the order in which they are tried
local MAX_UNIT = 131072 -- no low-latency unit is larger than a batch; anything above is no size
local MAX_BATCH = 65535
local UNDECIDED = 262144 -- bytes of a stream that are kept while nobody knows where its batches begin
local VERSION_BYTE = 9

local LINKS = {} -- by ends and instance
local HISTORY = {} -- what was decided about each packet, in the order of its batches
PORTS = {tcp = {}, udp = {}, scouting = {}} -- from preferences, and from what nodes say of themselves

local LOWLATENCY = {}
for id, reader in pairs(FAMILY.transport) do LOWLATENCY[id] = reader end
for id, reader in pairs(FAMILY.network) do LOWLATENCY[id] = reader end

-- Looking without showing ------------------------------------------------------------------------

-- Reads messages of the bytes p to e of a string; returns them, and whether they are good to the end.
local function look(bytes_of, p, e, family)
  local b, tvb, seen, opened = B, TVB, SEEN, OPEN
  B, TVB, SEEN, OPEN = bytes_of, nil, {}, nil
  local stop, wrong = attempt(messages, p, e, nil, family)
  local found = SEEN
  B, TVB, SEEN, OPEN = b, tvb, seen, opened
  return found, stop == e, wrong
end

-- The messages of a batch of some framing whose content is p to e.
local function look_batch(bytes_of, p, e, framing)
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

local function number_at(s, p, width)
  local value, scale = 0, 1
  for i = 1, width do
    value, scale = value + byte(s, p + i) * scale, scale * 256
  end
  return value
end

-- The whole length of the batch at p, prefix included; nil when the prefix is not all there.
local function size_at(s, p, framing)
  local prefix = PREFIX[framing]
  if #s < p + prefix then return nil end
  return prefix + number_at(s, p, prefix)
end

local LAST_CLOSE = {{"\2\0\3", "plain"}, {"\3\0\0\3", "compressed"}}

local function plausible_header(x)
  local kind = x % 32
  if kind == 4 then return floor(x / 32) % 4 == 0 end
  if kind == 3 or kind == 5 then return floor(x / 64) % 2 == 0 end
  return kind == 1 or kind == 2 or kind == 6 or kind == 7
end

-- Whether a batch may begin at p; nil when too little is there to tell.
local function plausible(s, p, framing)
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
local function follow(s, p, framing)
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
local function prove(evidence, s, p, e, framing, fits)
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
  local evidence = {points = 0, batches = 0, numbers = {}, continues = false}
  while evidence.points < enough or not (evidence.batches >= 2 or evidence.continues) do
    local size = size_at(s, p, framing)
    if not size or p + size > #s then return false end
    if size > PREFIX[framing] then
      if not prove(evidence, s, p + PREFIX[framing], p + size, framing, fits) then return false end
    elseif framing ~= "plain" then
      return false
    end
    p = p + size
    if p == #s then break end
  end
  return evidence.points >= enough and (evidence.batches >= 2 or evidence.continues)
end

local function no_opinion() return 0 end

-- Whether the number of a FRAME goes on from those seen in this direction: 1 yes, 0 cannot tell, -1 no.
local function fits_of(link, direction)
  local session, own = link.session, side(link, direction)
  return function(v)
    if not v.sn or v.sn > session.mask then return -1 end
    local lane = own.lanes[lane_key(session, v)]
    if not lane or not lane.last or session.mask < 0x3FFF then return 0 end
    return (v.sn - lane.last) % (session.mask + 1) < 0x1000 and 1 or 0
  end
end

-- The first position from which batches can be followed, and their framing.
local function find_batch(s, from, framings, fits, enough)
  for p = from, #s - 1 do
    for _, framing in ipairs(framings) do
      if plausible(s, p, framing) and follow(s, p, framing) and proof(s, p, framing, fits, enough) then
        return p, framing
      end
    end
  end
end

-- True when the bytes are whole good batches to the last one.
local function fills(s, framing)
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
local function opens(s, p, e)
  local found, good = look(s, p, e, FAMILY.transport)
  return good and #found == 1 and found[1].record == "init" and found[1].version == VERSION_BYTE
end

-- Showing a batch --------------------------------------------------------------------------------

local CUT = {truncated = true, bad_length = true, chain_cut = true, body_missing = true}

-- The bytes from a fault to the end, and the fault on them.
local function show_malformed(t, kind, p, e)
  local rest = add(t, F["malformed"], range(TVB, p, e - p))
  rest:add_proto_expert_info(EXPERT["fault." .. kind])
end

-- One row for bytes that belong to no readable message.
local function show_unknown(root, kind, p, e)
  local v = open("unknown", add(root, F["unknown"], range(TVB, p, e - p)), p)
  v.fault = kind
  show_malformed(v.item, kind, p, e)
  told(v)
end

-- What could not be read of a message: shown on its bytes, and the message told as far as it goes.
local function show_fault(root, wrong, e, cut)
  local v, kind = OPEN, wrong.kind
  if cut and CUT[kind] then kind = cut end
  if v.record == "unknown" then v.item = add(root, F["unknown"], range(TVB, wrong.at, e - wrong.at)) end
  v.fault = kind
  show_malformed(v.item, kind, wrong.at, e)
  told(v)
end

-- Reads messages from p to e of the current bytes; returns where a fault is, if there is one.
local function show_messages(root, p, e, family, cut)
  local _, wrong = attempt(messages, p, e, root, family)
  if not wrong then return nil end
  show_fault(root, wrong, e, cut)
  return wrong.at
end

-- Other bytes to read for a while: decompressed, or put together.
local function reading(plain, tvb, action)
  local b, before = B, TVB
  B, TVB = plain, tvb
  local result = action()
  B, TVB = b, before
  return result
end

-- A tvb of bytes that are not in the packet; nil where Wireshark refuses.
local function new_tvb(plain, name)
  if plain == "" then return nil end
  return ByteArray.new(plain, true):tvb(name)
end

read_whole = function(t, facts)
  local plain = facts.whole
  local tvb = new_tvb(plain, "Zenoh message in " .. #facts.run.frames .. " fragments")
  if not tvb then return end
  reading(plain, tvb, function()
    local root = add(t, F["whole"], range(tvb, 0, #plain))
    local reader = FAMILY.network[byte(plain, 1) % 32]
    local function one(p, e, item)
      if not reader then
        open("unknown", item, p)
        fault("unknown_message", p)
      end
      return reader(p, e, item)
    end
    WHOLE_OF, ONLY_END = facts.run, #plain
    local _, wrong = attempt(one, 0, #plain, root)
    if wrong then show_fault(root, wrong, #plain) end
    WHOLE_OF, ONLY_END = nil, nil
  end)
end

local function show_compressed(root, p, e)
  local flags = byte(B, p + 1)
  local r = range(TVB, p, 1)
  add(root, F["batch.c"], r)
  if flags > 1 then add(root, F["batch.reserved"], r) end
  if flags % 2 == 0 then return show_messages(root, p + 1, e, FAMILY.transport, BATCH.cut) end
  local plain = lz4_block(sub(B, p + 2, e), MAX_BATCH)
  if not plain then
    show_unknown(root, "bad_compression", p + 1, e)
    return p + 1
  end
  local tvb = new_tvb(plain, "Decompressed Zenoh batch")
  if not tvb then return nil end
  reading(plain, tvb, function() return show_messages(root, 0, #plain, FAMILY.transport) end)
end

-- Shows the content p to e of a batch whose size stands before it; returns where a fault is.
local function show_content(root, p, e, framing)
  if framing == "compressed" then return show_compressed(root, p, e) end
  return show_messages(root, p, e, framing == "lowlatency" and LOWLATENCY or FAMILY.transport, BATCH.cut)
end

-- What is known of both ends, as it is after the messages of the batch.
local function show_ends(root, entry)
  local link, direction = entry.link, entry.direction
  if BATCH.first_visit then
    entry.src = side(link, direction).zid
    entry.dst = not link.multicast and side(link, 3 - direction).zid or nil
    if BATCH.asks_init then entry.dst = nil end
  end
  if entry.src then generated(root, F["srczid"], entry.src) end
  if entry.dst then generated(root, F["dstzid"], entry.dst) end
end

local function late(link)
  if link.told_late or link.handshake or link.multicast and link.zids[1] then return false end
  link.told_late = true
  return true
end

-- Shows one batch: bytes p to e, of which ``prefix`` are its size.
local function show_batch(tree, entry, p, e, prefix, content)
  local root = add(tree, proto, range(TVB, p, e - p))
  if prefix > 0 then add(root, F["batch.size"], range(TVB, p, prefix), number_at(B, p, prefix)) end
  BATCH.link, BATCH.direction, BATCH.ordinal, BATCH.facts = entry.link, entry.direction, 0, entry.facts
  BATCH.cut, BATCH.asks_init, BATCH.lines = entry.cut, false, {}
  local stop = content(root)
  if BATCH.lines[1] then append_text(root, ": " .. concat(BATCH.lines, " | ")) end
  show_ends(root, entry)
  if BATCH.first_visit and BATCH.carries and late(entry.link) then entry.late = true end
  if entry.late then show_note(root, "late_capture") end
  local most = entry.link.session.batch_size
  if BATCH.first_visit and most and entry.link.handshake and e - p - prefix > most then entry.too_large = most end
  if entry.too_large then
    show_note(root, "batch_too_large", e - p - prefix .. " bytes, not " .. entry.too_large)
  end
  return stop
end

-- What was decided about packets ------------------------------------------------------------------

local VISIT = {} -- of the packet being dissected: number, first visit, and how many of its calls are repeated

local function begin(pinfo)
  local private = pinfo.private
  if private[NAME] == nil then
    private[NAME] = "seen"
    forget_story()
    VISIT = {number = pinfo.number, first = not pinfo.visited, calls = 0}
    BATCH = {frame = VISIT.number, time = pinfo.rel_ts, first_visit = VISIT.first}
  end
  BATCH.pinfo = pinfo
  return VISIT
end

-- A call is one visit of the dissector for some bytes of a packet: their length, how many of them it used, and what
-- it did with them. Calls that did nothing are not remembered: Wireshark does not repeat those that asked for more.
local function remember_call(length)
  local calls = HISTORY[VISIT.number]
  if not calls then
    calls = {}
    HISTORY[VISIT.number] = calls
  end
  local call = {length = length, used = length}
  calls[#calls + 1] = call
  return call
end

local function remember(call, entry)
  call[#call + 1] = entry
  entry.facts = {}
  return entry
end

-- The call to repeat, when a packet is dissected again. Bytes that asked for more may be left out then.
local function remembered(length)
  local call = (HISTORY[VISIT.number] or {})[VISIT.calls + 1]
  if call and (length == call.length or length == call.used) then
    VISIT.calls = VISIT.calls + 1
    return call
  end
end

-- Learning ports ---------------------------------------------------------------------------------

function known_port(pinfo, ports)
  return ports[pinfo.src_port] or ports[pinfo.dst_port]
end

-- A node says where it listens: that port is Zenoh's.
local function learn_locators(locators)
  for _, locator in ipairs(locators or {}) do
    local kind, port = string.match(locator, "^(%a+)/.+:(%d+)")
    if port then
      local ports = (kind == "udp" or kind == "quic") and PORTS.udp or PORTS.tcp
      ports[tonumber(port)] = true
    end
  end
end

function LEARN.hello(_, v)
  learn_locators(v.locators)
end

function LEARN.network_oam(_, v)
  for _, state in ipairs(v.states or {}) do learn_locators(state.locators) end
end

-- Finding links ----------------------------------------------------------------------------------

local function ends_of(pinfo)
  return tostring(pinfo.src) .. "/" .. pinfo.src_port, tostring(pinfo.dst) .. "/" .. pinfo.dst_port
end

-- What is known of the bytes between two ends, and the direction of this packet.
local function holder_of(pinfo, kind)
  local from, to = ends_of(pinfo)
  local key = kind .. " " .. (from < to and from .. " " .. to or to .. " " .. from)
  local holder = LINKS[key]
  if not holder then
    holder = {from = from, streams = {{}, {}}}
    LINKS[key] = holder
  end
  return holder, holder.from == from and 1 or 2
end

local function become_zenoh(holder, ordered, framing, multicast)
  holder.link, holder.other = new_link(ordered, multicast), false
  if framing ~= "plain" then holder.link.framing = framing end
end

-- An INIT on a link that was open before: the ends are used again.
local function new_handshake(link, s, p)
  if not link or link.multicast or not (link.switched[1] or link.switched[2] or link.closed) then return false end
  return byte(s, p + 1) % 64 == 1 and byte(s, p + 2) == VERSION_BYTE
end

-- Streams ----------------------------------------------------------------------------------------
--
-- Wireshark gives segments in order, some put together because more was asked for; of those that the capture lacks
-- it says nothing. So the bytes must tell: a batch that was asked for must come back as it was, and every other
-- segment must begin with a batch that goes on from the last one.

local function show_entry(tree, entry)
  local p, e = entry.at, entry.stop
  if entry.kind == "undecoded" then
    return show_batch(tree, entry, p, e, 0, function(root)
      if entry.told then
        add(root, F["undecoded"], range(TVB, p, e - p))
      else
        show_unknown(root, "gap", p, e)
      end
    end)
  end
  local prefix = min(PREFIX[entry.framing], e - p)
  return show_batch(tree, entry, p, e, prefix, function(root)
    if e == p + prefix then return nil end
    return show_content(root, p + prefix, e, entry.framing)
  end)
end

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
  local b = B
  B = s
  local _, _, lo, hi = pcall(halves, p + 3, #s, 64)
  B = b
  local own, size = side(link, direction), link.session.mask + 1
  if not hi or hi > 0 then return 0 end
  if own.initial_sn and (lo - own.initial_sn) % size <= WINDOW then return 1 end -- a lane of its own
  for _, lane in pairs(own.lanes) do
    if lane.last and (lo - lane.last) % size <= WINDOW then return 1 end
  end
  return next(own.lanes) and -1 or 0
end

-- Whether bytes that begin a segment begin a batch, as far as they can tell.
local function begins_batch(link, direction, s)
  local framing, size, no_size = next_batch(link, direction, s, 0)
  if not size or no_size then return not no_size end
  if framing == "plain" then
    local verdict = goes_on(link, direction, s, 0)
    if verdict == 1 or verdict == 0 and (size <= #s or size < 4096) then return true end -- others are short
  elseif plausible(s, 0, framing) ~= false then
    return true
  end
  return size <= #s and follow(s, size, framing)
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

-- Reads the whole batches of a stream's bytes; what is left is asked for again with more bytes behind it.
local function drain(holder, direction, s, tree, pinfo, missing)
  local link, state = holder.link, holder.streams[direction]
  local p, n, call = 0, #s, nil
  local function entry_of(values)
    values.link, values.direction = link, direction
    call = call or remember_call(n)
    return remember(call, values)
  end
  local function undecoded(stop)
    show_entry(tree, entry_of({kind = "undecoded", at = p, stop = stop, told = state.told}))
    state.told = true
    p = stop
  end
  -- Asks for ``count`` more bytes, or any; false when there are none to be had.
  local function more(count)
    if missing > 0 or pinfo.can_desegment == 0 then return false end
    pinfo.desegment_offset, pinfo.desegment_len = p, count or DESEGMENT_ONE_MORE_SEGMENT
    state.asked = {length = n - p, exactly = count and n - p + count, head = sub(s, p + 1, min(n, p + 64))}
    if call then call.used, call.asks, call.more = p, p, pinfo.desegment_len end
    return true
  end

  local before = 0 -- bytes that were there already when any more were asked for
  if state.asked then
    if not as_asked(state.asked, s) then
      lose(state)
    elseif not state.asked.exactly then
      before = state.asked.length
    end
  elseif not state.lost and (state.skip or 0) <= 0 and not begins_batch(link, direction, s) then
    lose(state)
  end
  state.asked = nil
  -- Wireshark gives the same bytes from their beginning again when a batch that began before the newest segment is
  -- still not whole. So nothing is read until the unfinished batch is one that begins in it.
  local function too_early(from)
    local tail = before > 0 and unfinished(link, direction, s, from)
    return tail and tail <= before and more()
  end

  if before > 0 and not state.lost and too_early(0) then return end
  if (state.skip or 0) > 0 then
    local count = min(state.skip, n)
    state.skip = state.skip - count
    undecoded(count)
  end
  while p < n do
    if state.lost then
      local sure = link.handshake or link.framing
      local framings = sure and {framing_of(link, direction)} or FRAMINGS
      local at, framing
      if n - p >= 1.3 * (state.tried or 0) then
        state.tried = n - p
        at, framing = find_batch(s, p, framings, fits_of(link, direction), 4)
      end
      if not at then
        if n - p > UNDECIDED or not more() then
          undecoded(n)
          state.tried = 0
        end
        return
      end
      if p == 0 and too_early(at) then
        state.tried = 0
        return
      end
      if not sure and framing ~= "plain" then link.framing = framing end
      if at > p then undecoded(at) end
      state.lost, state.told, state.tried = false, false, 0
    end
    local framing, size, no_size = next_batch(link, direction, s, p)
    if no_size then
      state.lost, state.tried = true, 0
    elseif not size or p + size > n then
      local left = size and size - (n - p)
      if more(left) then return end
      show_entry(tree, entry_of({kind = "batch", framing = framing, at = p, stop = n, cut = "gap"}))
      skip_missing(state, left or 0, missing)
      return
    else
      local wrong = show_entry(tree, entry_of({kind = "batch", framing = framing, at = p, stop = p + size}))
      if wrong and framing ~= "compressed" and not follow(s, p + size, framing) then
        -- the size itself may be damaged: the next batch is looked for from the fault on
        p, state.lost, state.told, state.tried = wrong, true, true, 0
      else
        p = p + size
      end
    end
  end
  if missing > 0 then skip_missing(state, 0, missing) end
end

local function replay(tree, pinfo, call)
  for _, entry in ipairs(call) do show_entry(tree, entry) end
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
  for direction = 1, 2 do holder.streams[direction].lost = at > 0 end
  state.tried = 0
  return true
end

-- Bytes of a stream. ``known``: on a port of Zenoh. Returns how many are ours, 0 for none.
function dissect_stream(tvb, pinfo, tree, kind, known)
  local n = tvb:len()
  local holder, direction = holder_of(pinfo, kind)
  if n == 0 or holder.other and not known then return 0 end
  local visit = begin(pinfo)
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
  if first and first > 4 and first <= n and new_handshake(holder.link, s, 2) and opens(s, 2, first) then
    close_link(holder.link)
    holder.link, holder.streams, holder.from = nil, {{}, {}}, select(1, ends_of(pinfo))
    direction = 1
  end
  if not holder.link then
    local answer = not holder.other and decide(holder, holder.streams[direction], s, known)
    if answer == false then
      holder.other = true
      return 0
    elseif answer == nil then
      if pinfo.can_desegment == 0 or missing > 0 then return 0 end
      pinfo.desegment_offset, pinfo.desegment_len = 0, DESEGMENT_ONE_MORE_SEGMENT
      holder.streams[direction].asked = {length = n, head = sub(s, 1, min(n, 64))}
      return n
    end
  end
  drain(holder, direction, s, tree, pinfo, missing)
  show_columns(pinfo)
  return n
end

-- Datagrams --------------------------------------------------------------------------------------

local function show_datagram(tree, entry, e)
  return show_batch(tree, entry, 0, e, 0, function(root) return show_content(root, 0, e, entry.framing) end)
end

-- A datagram, or a message of a WebSocket, of a link that is Zenoh.
local function take_datagram(holder, direction, tree, n, missing)
  show_datagram(tree, remember(remember_call(n), {link = holder.link, direction = direction,
    framing = framing_of(holder.link, direction), cut = missing > 0 and "truncated" or nil}), n)
end

-- SCOUT and HELLO: one message, and nothing after it.
local function take_scouting(tree, n, missing, entry)
  local root = add(tree, proto, range(TVB, 0, n))
  BATCH.link, BATCH.direction, BATCH.ordinal, BATCH.facts, BATCH.lines = nil, 1, 0, entry.facts, {}
  BATCH.cut = missing > 0 and "truncated" or nil
  local reader = FAMILY.scouting[byte(B, 1) % 32]
  ONLY_END = n
  local _, wrong = attempt(reader, 0, n, root)
  if wrong then show_fault(root, wrong, n, BATCH.cut) end
  ONLY_END = nil
  append_text(root, ": " .. concat(BATCH.lines))
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
  local visit = begin(pinfo)
  local n = tvb:len()
  if n == 0 then return 0 end
  local s = tvb:raw(0, n)
  B, TVB = s, tvb
  if not visit.first then
    local call = remembered(n)
    if not call then return 0 end
    local entry = call[1]
    if entry.scouting then take_scouting(tree, n, entry.missing, entry) else show_datagram(tree, entry, n) end
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
  local visit = begin(pinfo)
  local n = tvb:len()
  if n == 0 then return 0 end
  local s = tvb:raw(0, n)
  B, TVB = s, tvb
  if not visit.first then
    local call = remembered(n)
    if not call then return 0 end
    show_datagram(tree, call[1], n)
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

-- Serial lines -----------------------------------------------------------------------------------

-- What a serial frame is when it carries no messages.
local function step_text(flags)
  local steps = {}
  for place, name in ipairs({"INIT", "ACK", "RESET"}) do
    if floor(flags / 2 ^ (place - 1)) % 2 == 1 then steps[#steps + 1] = name end
  end
  return "serial " .. (#steps > 0 and concat(steps, "+") or "frame")
end

-- A frame without its stuffing: header, length, messages, checksum. Returns where its messages are.
local function show_serial_frame(root, plain)
  local r = range(TVB, 0, 1)
  for _, name in ipairs({"reset", "ack", "init"}) do add(root, F["serial." .. name], r) end
  if #plain < 3 then return nil, "truncated" end
  local length = number_at(plain, 1, 2)
  add(root, F["serial.length"], range(TVB, 1, 2), length)
  if 3 + length > #plain then return nil, "bad_length" end
  if 3 + length + 4 > #plain then return length, "truncated" end
  local place = range(TVB, 3 + length, 4)
  local crc = number_at(plain, 3 + length, 4)
  add(root, F["serial.crc"], place, crc)
  if crc ~= serial_crc(sub(plain, 4, 3 + length)) then return length, "bad_checksum" end
  return length
end

-- Both directions of a line, where the capture tells them apart; else nothing is remembered from frame to frame.
local function serial_link(pinfo)
  local direction = pinfo.p2p_dir
  LINKS.serial = LINKS.serial or {}
  local holder = LINKS.serial
  if not holder.link or direction ~= 0 and direction ~= 1 then become_zenoh(holder, true, "plain") end
  holder.link.told_late = true
  return holder.link, direction == 1 and 2 or 1
end

-- Frames as they are on the line: COBS, each ended by a zero byte. A zero byte alone is an idle line.
function dissect_serial(tvb, pinfo, tree)
  local visit = begin(pinfo)
  local n = tvb:len()
  local wire = tvb:raw(0, n)
  local call = visit.first and remember_call(n) or remembered(n)
  local p, count = 0, 0
  while p < n do
    local stop = find(wire, "\0", p + 1, true) or n
    if stop > p + 1 then
      local plain = byte(wire, stop) == 0 and cobs_decode(sub(wire, p + 1, stop - 1))
      local root = add(tree, F["serial"], range(tvb, p, stop - p))
      if not plain or plain == "" then
        root:add_proto_expert_info(EXPERT[byte(wire, stop) == 0 and "fault.bad_length" or "fault.truncated"])
        story("serial frame that cannot be read")
      else
        B, TVB = plain, new_tvb(plain, "Zenoh serial frame")
        local length, wrong = show_serial_frame(root, plain)
        if wrong then root:add_proto_expert_info(EXPERT["fault." .. wrong]) end
        if length and length > 0 then
          count = count + 1
          local link, direction = serial_link(pinfo)
          local entry = visit.first and remember(call, {link = link, direction = direction}) or call and call[count]
          if entry then
            show_batch(root, entry, 3, 3 + length, 0, function(t)
              return show_messages(t, 3, 3 + length, FAMILY.transport)
            end)
          end
        else
          story(step_text(byte(plain, 1)))
        end
      end
    end
    p = stop
  end
  show_columns(pinfo)
  return n
end

function forget()
  LINKS, HISTORY, VISIT = {}, {}, {}
  forget_sessions()
  forget_counts()
  forget_story()
end

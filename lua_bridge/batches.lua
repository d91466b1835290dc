-- For the other parts: new_tvb show_fault mark_of show_batch begin remember_call remember remembered
--   forget_packets
--
-- Showing a batch, and remembering what was decided about each packet.

local CUT = {truncated = true, bad_length = true, chain_cut = true, body_missing = true}

-- The bytes from a fault to the end, and the fault on them.
local function show_malformed(t, kind, p, e)
  local rest = add(t, F["malformed"], range(TVB, p, e - p))
  rest:add_proto_expert_info(EXPERT["fault." .. kind])
end

-- One row for bytes that belong to no readable message.
local function show_unknown(root, kind, p, e)
  local v = open({record = "unknown", item = add(root, F["unknown"], range(TVB, p, e - p)), start = p})
  v.fault = kind
  show_malformed(v.item, kind, p, e)
  told(v)
end

-- What could not be read of a message: shown on its bytes, and the message told as far as it goes.
function show_fault(root, wrong, e, cut)
  local v, kind = OPEN or open({record = "unknown", start = wrong.at}), wrong.kind
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
function new_tvb(plain, name)
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
        open({record = "unknown", item = item, start = p})
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

-- How a direction of a link is read and who its ends are: shared by all batches of which that is the same.
local function mode_of(link, direction, framing)
  local src = side(link, direction).zid
  local dst = not link.multicast and not BATCH.asks_init and side(link, 3 - direction).zid or nil
  local mode = link.modes[direction]
  if not mode or mode.framing ~= framing or mode.src ~= src or mode.dst ~= dst then
    mode = {link = link, direction = direction, framing = framing, src = src, dst = dst}
    link.modes[direction] = mode
  end
  return mode
end

local function late(link)
  if link.told_late or link.handshake or link.multicast and link.zids[1] then return false end
  link.told_late = true
  return true
end

-- Tells a batch that is sent again from another one with the same number: its size, how it begins and how it ends.
function mark_of(s, p, e)
  return sub(s, p + 1, min(p + 12, e)) .. byte(s, e)
end

-- Shows one batch: bytes p to e, of which ``prefix`` are its size. Its entry tells how it was read before, if it was.
-- Returns where a fault is.
function show_batch(tree, entry, p, e, prefix, link, direction, framing)
  local root = add(tree, proto, range(TVB, p, e - p))
  local batch, mode = BATCH, entry.mode
  if mode then link, direction, framing = mode.link, mode.direction, mode.framing end
  batch.link, batch.direction, batch.entry, batch.ordinal = link, direction, entry, 0
  batch.cut, batch.asks_init, batch.lines, batch.line = entry.cut, false, 0, nil
  batch.mark = mark_of(B, p, e)
  if prefix > 0 then add(root, F["batch.size"], range(TVB, p, prefix), number_at(B, p, prefix)) end
  local wrong
  if entry.undecoded then
    if entry.undecoded == "told" then
      add(root, F["undecoded"], range(TVB, p, e - p))
    else
      show_unknown(root, "gap", p, e)
    end
  elseif e > p + prefix then
    wrong = show_content(root, p + prefix, e, framing)
  end
  if batch.line then append_text(root, ": " .. shortened(batch.line)) end
  if not mode then
    mode = mode_of(link, direction, framing)
    entry.mode = mode
    local most = link.handshake and link.session.batch_size
    if most and e - p - prefix > most and not entry.undecoded then entry.too_large = most end
    if batch.carries and late(link) then entry.late = true end
  end
  if mode.src then generated(root, F["srczid"], mode.src) end
  if mode.dst then generated(root, F["dstzid"], mode.dst) end
  if entry.late then show_note(root, "late_capture") end
  if entry.too_large then show_note(root, "batch_too_large", e - p - prefix .. " bytes, not " .. entry.too_large) end
  return wrong
end

-- What was decided about packets ------------------------------------------------------------------

local HISTORY = {} -- calls by packet
local VISIT = {} -- the packet being dissected: its number, whether it is its first visit, how many calls are repeated

-- In one pass tshark shows a packet when it first sees it, and never sees it again; all other programs read the file
-- first and show packets later. So what was decided need not be kept: memory does not grow with the capture, and the
-- smaller heap is faster.
local ONE_PASS = not gui_enabled()

function begin(pinfo, tree)
  local private = pinfo.private
  if private[NAME] == nil then
    private[NAME] = "seen"
    forget_story()
    forget_records()
    local first = not pinfo.visited
    VISIT.number, VISIT.first, VISIT.calls = pinfo.number, first, 0
    VISIT.kept = not (ONE_PASS and first and tree.visible)
    BATCH.frame, BATCH.time, BATCH.first_visit, BATCH.carries = VISIT.number, pinfo.rel_ts, first, false
    BATCH.kept = VISIT.kept
  end
  BATCH.pinfo = pinfo
  return VISIT
end

-- A call is one visit of the dissector for some bytes of a packet: their length, how many of them it used, and what
-- it did with them. Calls that did nothing are not remembered: Wireshark does not repeat those that asked for more.
function remember_call(length)
  if not VISIT.kept then return {length = length} end
  local calls = HISTORY[VISIT.number]
  if not calls then
    calls = {}
    HISTORY[VISIT.number] = calls
  end
  local call = {length = length}
  calls[#calls + 1] = call
  return call
end

function remember(call, entry)
  call[#call + 1] = entry
  return entry
end

-- The call to repeat, when a packet is dissected again. Bytes that asked for more may be left out then.
function remembered(length)
  local call = (HISTORY[VISIT.number] or {})[VISIT.calls + 1]
  if call and (length == call.length or length == call.asks) then
    VISIT.calls = VISIT.calls + 1
    return call
  end
end

function forget_packets()
  HISTORY, VISIT = {}, {}
end

-- For the other parts: WHOLE_OF ONLY_END read_whole generated show_note forget_telling
--
-- Telling a message: what the session knows of it goes into the tree, the columns and the counts.
--
-- WHOLE_OF is the run of fragments that the message being read came in, ONLY_END where the bytes end that hold one
-- message only. read_whole reads a message put together from fragments.

local NOTES = {
  late_capture = "The capture began after the handshake: what was negotiated and declared is not known",
  sequence_gap = "Sequence numbers are missing",
  sn_over_resolution = "The sequence number does not fit the negotiated resolution",
  reply_after_final = "A reply after RESPONSE_FINAL",
  final_missing = "No RESPONSE_FINAL for this request",
  batch_too_large = "The batch is larger than negotiated",
  unresolved_key = "The declaration of this number was not seen",
  incomplete_fragments = "A message in fragments was not completed",
  limit = "Too much to remember",
}
for name, about in pairs(NOTES) do
  expert_field("note." .. name, about, expert.group.SEQUENCE, expert.severity.NOTE)
end

function generated(t, f, value)
  set_generated(add(t, f, value))
end

-- A finding that is no fault of the message: its name to filter by, and what it is about.
function show_note(t, name, about)
  generated(t, F["note"], name)
  t:add_proto_expert_info(EXPERT["note." .. name], about and NOTES[name] .. ": " .. about or NOTES[name])
end

local function seconds(value)
  local ns, sign = floor(math.abs(value) * 1e9 + 0.5), value < 0 and -1 or 1
  return NSTime(sign * floor(ns / 1e9), sign * floor(ns % 1e9))
end

-- Payload and encoding of a PUT, an ERR or the body of a query; ``t`` is where the payload stands.
local function show_data(short, t, v, key)
  local length, whole = payload_of(v)
  local encoding = encoding_text(v)
  add(short, F["encoding"], shown(encoding))
  if not length then return end
  if length < 4294967296 then add(short, F["payload_len"], length) end -- what is announced can be any number
  if v.data_end then
    local place = range(TVB, v.data, length)
    add(short, F["payload"], place)
    if length > 0 then hand_on(t, BATCH.pinfo, key, encoding, place) end
  elseif whole then
    for _, piece in ipairs(v.slices) do
      local size = piece.data_end and piece.data_end - piece.data
      if size then add(short, F["payload"], range(TVB, piece.data, size)) end
    end
  end
end

local HAS_DATA = {put = true, err = true}

local function show_body(short, inner, kind, key)
  if kind then add(short, F["msg"], kind) end
  if inner.record == "reply" then inner = inner.body end
  if not inner then return end
  if HAS_DATA[inner.record] then
    show_data(short, inner.item, inner, key)
  elseif inner.record == "query" then
    local value = inner.exts and (inner.exts["ext.query_body"] or inner.exts["ext.query_body_sliced"])
    if value then show_data(short, inner.item, value, key) end
  end
end

-- What leads from one packet to another.
local function show_links(short, t, facts)
  local query, interest = facts.query, facts.interest
  if facts.declared_in then add(short, F["declared_in"], facts.declared_in) end
  if query and facts.asks then
    if query.response or query.final then add(short, F["response_in"], query.response or query.final) end
    if query.final then add(short, F["final_in"], query.final) end
    if not query.final and not BATCH.first_visit then show_note(t, "final_missing") end
  elseif query then
    add(short, F["request_in"], query.frame)
    add(short, F["response_time"], seconds(facts.elapsed))
  end
  if interest and facts.asks then
    if interest.final then add(short, F["interest_final_in"], interest.final) end
  elseif interest then
    add(short, F["interest_in"], interest.frame)
  end
  local run = facts.run or facts.slice and facts.slice.run
  if run and run.done then add(short, F["reassembled_in"], run.done) end
  if facts.frames then
    for _, frame in ipairs(facts.frames) do add(short, F["fragment_in"], frame) end
  end
end

-- Messages that need nothing to be known before them.
local OPENING = {scout = true, hello = true, init_syn = true, init_ack = true, open_syn = true, open_ack = true,
  join = true, close = true, keep_alive = true, unknown = true}

-- What is known of a message: learnt on the first visit of its packet, and the same ever after.
local function facts_of(v)
  local batch = BATCH
  local entry, ordinal = batch.entry, batch.ordinal + 1
  batch.ordinal = ordinal
  if not batch.first_visit then return entry.facts and entry.facts[ordinal] end
  local learn = LEARN[v.record]
  local facts = learn and learn(batch, v)
  if WHOLE_OF then
    local whole = {frames = WHOLE_OF.frames}
    for name, value in pairs(facts or {}) do whole[name] = value end
    facts = whole
  end
  if facts and batch.kept then
    entry.facts = entry.facts or {}
    entry.facts[ordinal] = facts
  end
  return facts
end

told = function(v, p)
  local t, batch = v.item, BATCH
  if not t then return end -- only looking
  if ONLY_END and p and p < ONLY_END and not v.fault then noted("trailing_bytes", t, p, ONLY_END - p) end
  OPEN = nil
  if batch.cut and v.record == "fragment" and not v.fault then
    v.fault = batch.cut
    t:add_proto_expert_info(EXPERT["fault." .. batch.cut])
  end
  local facts, kind, inner = facts_of(v), kind_of(v), v.body
  local about = inner and body_of(v)
  batch.carries = batch.carries or not OPENING[kind]
  batch.asks_init = batch.asks_init or kind == "init_syn"
  local key = facts and facts.key
  if not key and v.record == "push" and v.scope == 0 then key = v.suffix or v.N == 0 and "" or nil end

  local short = add(t, F["msg"], kind)
  set_generated(short)
  if v.sn then
    local _, lo, hi = halves(v.start + 1, #B, 64) -- behind the header, again to the last bit
    add(short, F["sn"], UInt64(lo, hi))
  end
  if key then add(short, F["keyexpr"], shown(key)) end
  if v.zid and not batch.link then add(short, F["srczid"], printed(v.zid)) end -- SCOUT and HELLO
  if v.request_id then add(short, F["rid"], v.request_id) end
  if inner then show_body(short, inner, about, key) end
  if facts then
    show_links(short, t, facts)
    if facts.notes then
      for _, pair in ipairs(facts.notes) do show_note(t, pair[1], pair[2]) end
    end
  end
  if v.fault then add(short, F["fault"], v.fault) end

  local line = message_text(v, key, facts and facts.frames and #facts.frames)
  set_text(t, shortened(line))
  if v.record ~= "frame" or v.fault then
    story(line)
    if batch.lines < 3 then batch.line = batch.line and batch.line .. " | " .. line or line end
    batch.lines = batch.lines + 1
  end
  if batch.first_visit then count_message(v, kind, about, facts, key) end
  if facts and facts.whole then read_whole(t, facts) end
end

function forget_telling()
  WHOLE_OF, ONLY_END = nil, nil
end

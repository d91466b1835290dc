-- For the other parts: LEARN BATCH new_link close_link side framing_of printed forget_sessions
--
-- What the session knows: ids of both ends, keys behind numbers, questions and answers, fragments, sequence numbers.
--
-- Packets are first read in the order of the capture; only then is anything learnt. What was known at a message is
-- kept as its facts, by packet, batch and message, so that a packet looks the same whenever it is dissected again.

local MAX_KEYS, MAX_ENTITIES, MAX_REQUESTS, MAX_ANSWERED, MAX_SUFFIXES = 100000, 200000, 10000, 256, 1000
local MASK = {[0] = 0x7F, 0x3FFF, 0x0FFFFFFF, 0xFFFFFFFF}

local SESSIONS = {} -- newest session by the ids of both ends

-- Links and sessions -----------------------------------------------------------------------------

local function new_side()
  return {keys = {}, key_count = 0, entities = {}, interests = {}, entity_count = 0, queries = {}, open_queries = 0,
    answered = {},
    lanes = {}, assemblers = {}}
end

local function new_session(sides)
  return {sides = sides or {new_side(), new_side()}, links = {}, mask = MASK[2], patch = 0}
end

-- A link: one connection, or the datagrams between two ends. Direction 1 is from the end that was seen first.
function new_link(ordered, multicast)
  local link = {ordered = ordered, multicast = multicast, offers = {}, zids = {}, switched = {}, modes = {},
    side_of = {1, 2}, session = new_session()}
  link.session.links[1] = link
  return link
end

function side(link, direction)
  return link.session.sides[link.side_of[direction]]
end

-- How the next batch of a direction is written.
function framing_of(link, direction)
  if link.framing then return link.framing end
  if not link.switched[direction] or not link.handshake then return "plain" end
  local session = link.session
  return session.low_latency and "lowlatency" or session.compression and "compressed" or "plain"
end

function close_link(link)
  link.closed = true
  for _, other in ipairs(link.session.links) do
    if not other.closed then return end
  end
  link.session.closed = true
end

local function negotiate(session, syn, ack)
  session.qos = syn.lanes and ack.lanes
  session.compression = syn.compression and ack.compression
  session.low_latency = syn.low_latency and ack.low_latency
  session.multilink = syn.multilink and ack.multilink
  session.patch, session.mask, session.batch_size = ack.patch, ack.mask, ack.batch_size
end

-- An id as Zenoh prints it.
function printed(id)
  if not id then return nil end
  local digits = string.gsub(id, "^0+", "")
  return digits ~= "" and digits or "0"
end

local function rank_below(a, b)
  return #a < #b or #a == #b and a <= b
end

local function offer_of(v)
  local exts = v.exts or {}
  local link = exts["ext.qos_link"] or {}
  return {
    lanes = exts["ext.lanes"] ~= nil or link.lanes == 1 or link.has_priorities == 1 or link.has_reliability == 1,
    compression = exts["ext.compression"] ~= nil,
    low_latency = exts["ext.low_latency"] ~= nil,
    multilink = exts["ext.init_syn_multi_link"] ~= nil or exts["ext.init_ack_multi_link"] ~= nil,
    patch = exts["ext.patch"] and exts["ext.patch"].patch or 0,
    mask = MASK[v.sn_resolution or 2],
    batch_size = v.batch_size or 65535,
  }
end

local function join_session(link, syn, ack)
  local zids = link.zids
  local low = rank_below(zids[1], zids[2]) and 1 or 2
  local pair = zids[low] .. "-" .. zids[3 - low]
  local ends = {link.session.sides[low], link.session.sides[3 - low]}
  local session = SESSIONS[pair]
  if session and not session.closed and session.multilink and syn.multilink and ack.multilink then
    for i = 1, 2 do
      for number, key in pairs(ends[i].keys) do session.sides[i].keys[number] = key end
    end
  else
    session = new_session(ends)
    SESSIONS[pair] = session
    negotiate(session, syn, ack)
  end
  session.known = true
  session.links[#session.links + 1] = link
  link.session, link.handshake = session, true
  link.side_of = low == 1 and {1, 2} or {2, 1}
end

-- Declarations and interests are remembered up to a limit, which counts all that a side ever made.
local function remember_entity(own, entities, id, entity)
  if not entities[id] then
    if own.entity_count >= MAX_ENTITIES then return false end
    own.entity_count = own.entity_count + 1
  end
  entities[id] = entity
  return true
end

-- Keys -------------------------------------------------------------------------------------------

local function lookup(owner, scope, suffix)
  local key = owner.keys[scope]
  if key then return key.name .. (suffix or ""), key.frame end
end

-- What the number in a message stands for, by whose table it is from (flag M); nil when that was not seen.
local function declared(batch, scope, mapping)
  local direction = batch.direction
  if mapping == 0 then
    if batch.link.multicast then return nil end
    direction = 3 - direction
  end
  return side(batch.link, direction).keys[scope]
end

-- DECLARE KEYEXPR does not say whose table its scope is from: the receiver's, else the sender's.
local function declared_key(link, direction, v)
  if not v.scope or v.N == 1 and not v.suffix then return nil end
  if v.scope == 0 then return v.suffix or "" end
  if not link.multicast then
    local key, frame = lookup(side(link, 3 - direction), v.scope, v.suffix)
    if key then return key, frame end
  end
  return lookup(side(link, direction), v.scope, v.suffix)
end

local function remember_key(owner, number, name, frame)
  if not owner.keys[number] then
    if owner.key_count >= MAX_KEYS then return false end
    owner.key_count = owner.key_count + 1
  end
  owner.keys[number] = {name = name, frame = frame, facts = {}, count = 0}
  return true
end

local function ordered_session(session)
  return #session.links < 2 and session.links[1] ~= nil and session.links[1].ordered
end

-- What each kind of message does -----------------------------------------------------------------
--
-- A handler takes the batch being read (BATCH: link, direction, frame, time, and its entry) and the message, and
-- returns its facts.

LEARN, BATCH = {}, {}

local function with_note(facts, name, about)
  facts = facts or {}
  facts.notes = facts.notes or {}
  facts.notes[#facts.notes + 1] = {name, about}
  return facts
end

function LEARN.init(batch, v)
  local link, direction = batch.link, batch.direction
  if not v.zid then return end
  local id = printed(v.zid)
  local offer = offer_of(v)
  link.offers[direction], link.zids[direction] = offer, id
  side(link, direction).zid = id
  if v.A == 1 then
    link.answer = offer
  elseif v.fault then
    link.offers[direction] = nil -- what it asked for is known from the answer
  end
  if not link.answer or link.session.known then return end
  if not (link.zids[1] and link.zids[2]) then
    negotiate(link.session, link.answer, link.answer)
    link.handshake = true
  else
    local asked = link.offers[2]
    if asked == link.answer then asked = link.offers[1] end
    join_session(link, asked or link.answer, link.answer)
  end
end

function LEARN.open(batch, v)
  if v.fault or not v.initial_sn then return end
  local own = side(batch.link, batch.direction)
  own.initial_sn = own.initial_sn or v.initial_sn
  batch.link.switched[batch.direction] = true
end

function LEARN.join(batch, v)
  local link = batch.link
  if not v.zid then return end
  local id = printed(v.zid)
  if link.zids[1] ~= id or link.session.closed then
    link.session = new_session()
    link.session.links[1], link.session.known = link, true
    link.zids[1], link.closed = id, false
    link.session.sides[1].zid = id
  end
  local session = link.session
  session.qos = v.exts ~= nil and v.exts["ext.join_lanes"] ~= nil
  session.patch = v.exts and v.exts["ext.patch"] and v.exts["ext.patch"].patch or 0
  session.mask, session.batch_size = MASK[v.sn_resolution or 2], v.batch_size or 8192
end

-- Requests of a session that no RESPONSE_FINAL has ended: how many, and the packet of the first.
local function unanswered(session)
  local count, first = 0, math.huge
  for _, one in ipairs(session.sides) do
    for _, query in pairs(one.queries) do
      if not query.final then count, first = count + 1, min(first, query.frame) end
    end
  end
  return count, first
end

function LEARN.close(batch, v)
  local session = batch.link.session
  local over = session.closed
  if v.S == 1 then
    for _, other in ipairs(session.links) do other.closed = true end
  end
  close_link(batch.link)
  if over or not session.closed then return nil end
  local count, first = unanswered(session)
  if count == 0 then return nil end
  return with_note(nil, "final_missing", count .. " requests, the first in packet " .. first)
end

local function carrier(batch, v)
  if not v.sn or v.fault then return end
  local session, own, facts = batch.link.session, side(batch.link, batch.direction), nil
  local key = lane_key(session, v)
  local lane = own.lanes[key]
  if not lane then
    lane = {mask = session.mask, awaited = {}, ends = {}, recent = {}, age = 0}
    own.lanes[key] = lane
    if own.initial_sn and session.known then
      lane.last = (own.initial_sn - 1) % (session.mask + 1)
    end
  end
  if v.sn > session.mask then facts = with_note(facts, "sn_over_resolution", string.format("%.0f", v.sn)) end
  local missing = see(lane, v.sn, v.record == "fragment" and v.M == 0, ordered_session(session), batch.mark)
  if missing > 0 then
    facts = with_note(facts, "sequence_gap", string.format("%d before or around %.0f", missing, v.sn))
  end
  return facts, own, key
end

function LEARN.frame(batch, v)
  local facts, own, key = carrier(batch, v)
  local assembler = own and own.assemblers[key]
  if assembler and (#assembler.order > 0 or next(assembler.waiting)) and ordered_session(batch.link.session) then
    facts = with_note(facts, "incomplete_fragments", "the lane went on with a FRAME")
    assembler.runs, assembler.order, assembler.waiting, assembler.queue = {}, {}, {}, {}
  end
  return facts
end

function LEARN.fragment(batch, v)
  local facts, own, key = carrier(batch, v)
  if not own then return facts end
  local assembler = own.assemblers[key]
  if not assembler then
    local session = batch.link.session
    assembler = {mask = session.mask, marked = session.patch >= 1, runs = {}, order = {}, waiting = {},
      queue = {}}
    own.assemblers[key] = assembler
  end
  local exts = v.exts or {}
  local slice = {bytes = sub(B, v.data + 1, v.data_end), frame = batch.frame, more = v.M == 1}
  facts = facts or {}
  facts.slice = slice
  local whole, run, finding = assemble(assembler, v.sn, slice, exts["ext.first"] ~= nil, exts["ext.drop"] ~= nil)
  if whole then
    run.done = batch.frame
    facts.whole, facts.run = whole, run
  end
  if finding then facts = with_note(facts, finding) end
  return facts
end

local function keyed(batch, v, holder)
  holder = holder or v
  if not holder.scope or holder.N == 1 and not holder.suffix then return nil end -- not all of it could be read
  if holder.scope == 0 then return {key = holder.suffix or ""} end
  local key = declared(batch, holder.scope, holder.M)
  if key then return {key = key.name .. (holder.suffix or ""), declared_in = key.frame} end
  return with_note(nil, "unresolved_key", tostring(holder.scope))
end

-- The facts of most messages are the same as of others with that key: one table for all of them.
function LEARN.push(batch, v)
  local scope, suffix = v.scope, v.suffix
  if scope == 0 or not scope or v.N == 1 and not suffix then return nil end -- the suffix is the key
  local key = declared(batch, scope, v.M)
  if not key then return with_note(nil, "unresolved_key", tostring(scope)) end
  suffix = suffix or ""
  local facts = key.facts[suffix]
  if not facts then
    facts = {key = key.name .. suffix, declared_in = key.frame}
    key.count = key.count + 1
    if key.count > MAX_SUFFIXES then key.facts, key.count = {}, 0 end
    key.facts[suffix] = facts
  end
  return facts
end

function LEARN.request(batch, v)
  local facts = keyed(batch, v)
  if not v.request_id then return facts end
  local own = side(batch.link, batch.direction)
  local before = own.queries[v.request_id]
  if not before and own.open_queries >= MAX_REQUESTS then return with_note(facts, "limit", "too many open requests") end
  if not before then own.open_queries = own.open_queries + 1 end
  local query = {frame = batch.frame, time = batch.time}
  own.queries[v.request_id] = query
  facts = facts or {}
  facts.query, facts.asks = query, true
  return facts
end

local function answered(batch, v, facts)
  local asker = side(batch.link, 3 - batch.direction)
  local query = v.request_id and asker.queries[v.request_id]
  if not query then return facts end
  facts = facts or {}
  facts.query, facts.elapsed = query, batch.time - query.time
  return facts, query, asker
end

function LEARN.response(batch, v)
  local facts, query = answered(batch, v, keyed(batch, v))
  if query then
    if query.final then facts = with_note(facts, "reply_after_final") end
    query.response = query.response or batch.frame
  end
  return facts
end

function LEARN.response_final(batch, v)
  local facts, query, asker = answered(batch, v)
  if query and not query.final then
    query.final = batch.frame
    asker.answered[#asker.answered + 1] = v.request_id
    if #asker.answered > MAX_ANSWERED then
      local old = table.remove(asker.answered, 1)
      if asker.queries[old] and asker.queries[old].final then
        asker.queries[old] = nil
        asker.open_queries = asker.open_queries - 1
      end
    end
  end
  return facts
end

function LEARN.interest(batch, v)
  local own = side(batch.link, batch.direction)
  local facts = v.scope and keyed(batch, v) or nil
  if not v.id then return facts end
  if v.mode == 0 then
    local known = own.interests[v.id]
    own.interests[v.id] = nil
    return known and {key = known.key, interest = known} or nil
  end
  local interest = {frame = batch.frame, key = facts and facts.key}
  if not remember_entity(own, own.interests, v.id, interest) then
    return with_note(facts, "limit", "too many interests")
  end
  facts = facts or {}
  facts.interest, facts.asks = interest, true
  return facts
end

local function about_interest(batch, v, facts)
  local interest = v.interest_id and side(batch.link, 3 - batch.direction).interests[v.interest_id]
  if interest then
    facts = facts or {}
    facts.interest = interest
    if v.body and v.body.record == "declare_final" then interest.final = batch.frame end
  end
  return facts
end

-- What a declaration does to the tables of its side.
local function declaration(batch, v)
  local inner, own = v.body, side(batch.link, batch.direction)
  local number = inner and (inner.expr_id or inner.id)
  if not number or v.fault then return nil end
  local happens, what = string.match(inner.record, "^(%a+)_(.+)$")
  if what == "keyexpr" then
    if happens == "declare" then
      local key, frame = declared_key(batch.link, batch.direction, inner)
      if not key then return with_note(nil, "unresolved_key", tostring(inner.scope)) end
      local facts = {key = key, declared_in = frame}
      if not remember_key(own, number, key, batch.frame) then facts = with_note(facts, "limit", "key table full") end
      return facts
    end
    local known = own.keys[number]
    own.keys[number] = nil
    if known then own.key_count = own.key_count - 1 end
    return known and {key = known.name, declared_in = known.frame} or nil
  end
  if happens == "declare" then
    local facts = keyed(batch, v, inner)
    local entity = {key = facts and facts.key, frame = batch.frame}
    if not remember_entity(own, own.entities, what .. number, entity) then
      return with_note(facts, "limit", "too many declarations")
    end
    return facts
  end
  local known = own.entities[what .. number]
  own.entities[what .. number] = nil
  local named = inner.exts and inner.exts["ext.wire_expr"]
  if named and ((named.scope or 0) ~= 0 or (named.suffix or "") ~= "") then return keyed(batch, v, named) end
  return known and {key = known.key, declared_in = known.frame} or nil
end

function LEARN.declare(batch, v)
  return about_interest(batch, v, declaration(batch, v))
end

function forget_sessions()
  SESSIONS, BATCH = {}, {}
end

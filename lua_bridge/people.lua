-- For the other parts: kind_of body_of encoding_text payload_of message_text shortened story show_columns forget_story
--   pick_dissectors hand_on
--
-- What people read: the text of each message, the columns, and payloads handed to other dissectors.

local KIND = {init = {[0] = "init_syn", "init_ack"}, open = {[0] = "open_syn", "open_ack"}}

-- The kind of a message as in the rows of scapy-zenoh.
function kind_of(v)
  local steps = KIND[v.record]
  return steps and steps[v.A or 0] or v.record
end

-- The body of a message as in the rows; a reply counts as what it brings.
function body_of(v)
  local inner = v.body
  if not inner then return nil end
  if inner.record ~= "reply" then return inner.record end
  return inner.body and "reply_" .. inner.body.record
end

local CUSTOM_ENCODING = 65535

function encoding_text(v)
  local number, schema = v.encoding_id or 0, v.schema
  if number == CUSTOM_ENCODING and schema then return schema end
  local name = N.Encoding[number] or "unknown(" .. number .. ")"
  return schema and name .. ";" .. schema or name
end

-- Length, start and end of a payload; in shared memory only its length is known.
function payload_of(v)
  if v.slices then
    local length, whole = 0, true
    for _, piece in ipairs(v.slices) do
      if piece.record ~= "slice" then
        length, whole = length + (piece.data_len or 0), false
      elseif piece.data_end then
        length = length + piece.data_end - piece.data
      end
    end
    return length, whole
  end
  if v.data_end then return v.data_end - v.data end
end

local function key_shown(v, key)
  if key then return shown(key) end
  if v.scope then return (v.scope ~= 0 and "#" .. v.scope or "") .. shown(v.suffix or "") end
  return ""
end

-- Words with one space between them; what is empty is left out.
local function said(...)
  local words = {}
  for i = 1, select("#", ...) do
    local word = select(i, ...)
    if word and word ~= "" then words[#words + 1] = word end
  end
  return concat(words, " ")
end

local NAMES = {put = "PUT", err = "ERR"}

-- Written without said(), as push() below: these are most of all messages.
local function put_text(v)
  local length, whole = payload_of(v)
  local line = NAMES[v.record]
  if length then line = line .. string.format(whole == false and " %.0f B shm" or " %.0f B", length) end
  return v.E == 1 and line .. " " .. shown(encoding_text(v)) or line
end

local BODY_TEXT = {
  put = put_text,
  err = put_text,
  del = function() return "DEL" end,
  reply = function(v) return said("REPLY", v.body and (v.body.record == "put" and put_text(v.body) or "DEL")) end,
}

local function body_text(v)
  local write = v.body and BODY_TEXT[v.body.record]
  return write and write(v.body)
end

local function lane_text(name, v, more)
  local lane = v.exts and v.exts["ext.lane"]
  local priority = lane and lane.priority or 5
  return said(name, string.format("%.0f", v.sn or 0), v.R == 0 and "best effort" or "reliable",
    priority ~= 5 and N.Priority[priority], more)
end

local function node_text(name, v, more)
  return said(name, N.WhatAmI[v.whatami], v.zid, more)
end

local function declaration_text(v, key)
  local inner = v.body
  if not inner then return "DECLARE" end
  local happens, what = string.match(inner.record, "^(%a+)_(.+)$")
  return said(string.upper(happens), what, inner.expr_id or inner.id, (key or inner.scope) and key_shown(inner, key),
    v.interest_id and "for interest " .. v.interest_id)
end

local WANTED = {{"K", "keyexprs"}, {"S", "subscribers"}, {"Q", "queryables"}, {"T", "tokens"}}

local TEXT = {
  push = function(v, key)
    local put = body_text(v)
    return put and key and key ~= "" and "PUSH " .. shown(key) .. " " .. put or said("PUSH", key_shown(v, key), put)
  end,
  request = function(v, key)
    local parameters = v.body and v.body.parameters
    local asked = parameters and parameters ~= "" and "?" .. shown(parameters) or ""
    return said("REQUEST", v.request_id and "#" .. v.request_id, key_shown(v, key) .. asked, body_text(v))
  end,
  response = function(v, key)
    return said("RESPONSE", v.request_id and "#" .. v.request_id, key_shown(v, key), body_text(v))
  end,
  response_final = function(v) return said("RESPONSE_FINAL", v.request_id and "#" .. v.request_id) end,
  declare = declaration_text,
  interest = function(v, key)
    local wanted = {}
    for _, pair in ipairs(WANTED) do
      if v[pair[1]] == 1 then wanted[#wanted + 1] = pair[2] end
    end
    return said("INTEREST", v.id, N.InterestMode[v.mode], concat(wanted, "|"), key_shown(v, key))
  end,
  network_oam = function(v)
    return said("OAM", v.states and "link state of " .. #v.states .. " nodes" or v.id)
  end,
  transport_oam = function(v) return said("OAM", v.id, "(transport)") end,
  init = function(v) return node_text(v.A == 1 and "INIT ack" or "INIT syn", v) end,
  open = function(v)
    local lease = v.lease and string.format("lease %.0f %s", v.lease, v.T == 1 and "s" or "ms")
    return said("OPEN", v.A == 1 and "ack" or "syn", lease)
  end,
  close = function(v) return said("CLOSE", N.CloseReason[v.reason] or v.reason) end,
  keep_alive = function() return "KEEP_ALIVE" end,
  frame = function(v) return lane_text("FRAME", v) end,
  fragment = function(v)
    local size = string.format("%d B", (v.data_end or 0) - (v.data or 0))
    return lane_text("FRAGMENT", v, v.M == 0 and size .. " (last)" or size)
  end,
  join = function(v) return node_text("JOIN", v) end,
  scout = function(v)
    local roles = {}
    for place, role in ipairs({"router", "peer", "client"}) do
      if floor((v.what or 0) / 2 ^ (place - 1)) % 2 == 1 then roles[#roles + 1] = role end
    end
    return said("SCOUT for", concat(roles, "|"))
  end,
  hello = function(v) return node_text("HELLO", v, v.locators and "at " .. shown(concat(v.locators, " "))) end,
  unknown = function() return "unknown" end,
}

local function any_text(v, key)
  return said(string.upper(v.record), key_shown(v, key), body_text(v))
end

function message_text(v, key, fragments)
  local line = (TEXT[v.record] or any_text)(v, key)
  if fragments or v.fault then
    return said(line, fragments and "(" .. fragments .. " fragments)", v.fault and "!" .. v.fault)
  end
  return line
end

-- A text for a line of the tree: Wireshark would cut a long one inside a character.
function shortened(line)
  if #line <= 200 then return line end
  local stop = 200
  while stop > 1 and byte(line, stop + 1) >= 128 and byte(line, stop + 1) < 192 do stop = stop - 1 end
  return sub(line, 1, stop) .. "..."
end

-- Columns ----------------------------------------------------------------------------------------

local COLUMN_MESSAGES = 8
local STORY, MORE, WRITTEN = {}, 0, 0 -- of the packet: what is told, how much is not, how much of it is in the column

function story(line)
  if #STORY < COLUMN_MESSAGES then STORY[#STORY + 1] = shortened(line) else MORE = MORE + 1 end
end

function forget_story()
  STORY, MORE, WRITTEN = {}, 0, 0
end

-- A packet may be read in several calls, between which Wireshark keeps what is in the column.
function show_columns(pinfo)
  if #STORY == WRITTEN and MORE == 0 then return end
  local columns = pinfo.cols
  columns.protocol = "Zenoh"
  local line = concat(STORY, " | ", WRITTEN + 1)
  if MORE > 0 then line = (line ~= "" and line .. " | " or "") .. MORE .. " more" end
  if WRITTEN == 0 then columns.info = shown(line) else columns.info:append(shown(" | " .. line)) end
  WRITTEN, MORE = #STORY, 0
end

-- Payloads ---------------------------------------------------------------------------------------

local DISSECTOR_OF = {
  ["application/json"] = "json", ["text/json"] = "json", ["text/json5"] = "json",
  ["application/json-patch+json"] = "json", ["application/xml"] = "xml", ["text/xml"] = "xml",
  ["application/soap+xml"] = "xml", ["text/html"] = "data-text-lines", ["text/plain"] = "data-text-lines",
  ["zenoh/string"] = "data-text-lines", ["application/yaml"] = "data-text-lines",
  ["text/yaml"] = "data-text-lines", ["text/css"] = "data-text-lines", ["text/csv"] = "data-text-lines",
  ["text/markdown"] = "data-text-lines", ["text/javascript"] = "data-text-lines",
  ["application/protobuf"] = "protobuf",
}

-- Key pattern of the preference -> Lua pattern: ** is anything, * anything but a slash.
local function lua_pattern(glob)
  local escaped = string.gsub(glob, "[%^%$%(%)%%%.%[%]%+%-%?]", "%%%0")
  escaped = string.gsub(escaped, "%*%*", "\1")
  escaped = string.gsub(escaped, "%*", "[^/]*")
  return "^" .. string.gsub(escaped, "\1", ".*") .. "$"
end

local PICKED = {} -- {pattern, dissector name} in the order of the preference

function pick_dissectors(preference)
  PICKED = {}
  for glob, name in string.gmatch(preference or "", "([^%s=,;]+)%s*=%s*([^%s,;]+)") do
    local without = string.gsub(string.gsub(glob, "/%*%*$", ""), "%*%*/", "") -- ** is also nothing at all
    PICKED[#PICKED + 1] = {lua_pattern(glob), name}
    if without ~= glob then PICKED[#PICKED + 1] = {lua_pattern(without), name} end
  end
end

local function payload_dissector(key, encoding)
  for _, pair in ipairs(PICKED) do
    if key and find(key, pair[1]) then return pair[2] end
  end
  return DISSECTOR_OF[encoding] or DISSECTOR_OF[string.match(encoding, "^[^;]*")]
end

local FOUND = {} -- dissectors by name, false for those this Wireshark does not have

local function dissector_called(name)
  if FOUND[name] == nil then
    local good, dissector = pcall(Dissector.get, name)
    FOUND[name] = good and dissector or false
  end
  return FOUND[name]
end

-- Hands a payload on. What the other dissector does to the columns is overwritten afterwards.
function hand_on(t, pinfo, key, encoding, place)
  local name = payload_dissector(key, encoding)
  local dissector = name and dissector_called(name)
  if dissector and place:len() <= proto.prefs.payload_limit then
    HANDING = true
    pcall(dissector.call, dissector, place:tvb(), pinfo, t)
    HANDING = false
  end
end

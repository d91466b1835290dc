-- For the other parts: kind_of body_of encoding_text payload_of message_text story show_columns forget_story pick_dissectors hand_on
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
      local own = piece.record == "slice"
      length, whole = length + (own and (piece.data_end or piece.data or 0) - (piece.data or 0) or piece.data_len or 0),
        whole and own
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

local function put_text(v)
  local length, whole = payload_of(v)
  local told_of = {string.upper(v.record)}
  if length then told_of[2] = string.format("%d B", length) .. (whole == false and " shm" or "") end
  if v.E and v.E ~= 0 then told_of[#told_of + 1] = shown(encoding_text(v)) end
  return concat(told_of, " ")
end

local BODY_TEXT = {
  put = put_text,
  err = put_text,
  del = function() return "DEL" end,
  reply = function(v) return "REPLY" .. (v.body and (v.body.record == "put" and " " .. put_text(v.body) or " DEL") or "") end,
  query = function() return "" end,
}

local function body_text(v)
  local inner = v.body
  return inner and (BODY_TEXT[inner.record] or BODY_TEXT.query)(inner) or ""
end

local function lane_text(v)
  local lane = v.exts and v.exts["ext.lane"]
  local priority = lane and lane.priority or 5
  return string.format(" %.0f %s%s", v.sn or 0, v.R == 0 and "best effort" or "reliable",
    priority ~= 5 and " priority " .. priority or "")
end

local function node_text(v)
  return (N.WhatAmI[v.whatami] or "") .. " " .. (v.zid or "")
end

local function declaration_text(v, facts)
  local inner = v.body
  if not inner then return "DECLARE" end
  local happens, what = string.match(inner.record, "^(%a+)_(.+)$")
  local told_of = {string.upper(happens), what}
  if inner.expr_id or inner.id then told_of[#told_of + 1] = inner.expr_id or inner.id end
  local key = facts and facts.key
  if key or inner.scope then told_of[#told_of + 1] = key_shown(inner, key) end
  if v.interest_id then told_of[#told_of + 1] = "for interest " .. v.interest_id end
  return concat(told_of, " ")
end

local TEXT = {
  push = function(v, facts) return "PUSH " .. key_shown(v, facts and facts.key) .. " " .. body_text(v) end,
  request = function(v, facts)
    local parameters = v.body and v.body.parameters
    local other = body_text(v)
    return "REQUEST #" .. (v.request_id or "") .. " " .. key_shown(v, facts and facts.key)
      .. (parameters and parameters ~= "" and "?" .. shown(parameters) or "") .. (other ~= "" and " " .. other or "")
  end,
  response = function(v, facts)
    return "RESPONSE #" .. (v.request_id or "") .. " " .. key_shown(v, facts and facts.key) .. " " .. body_text(v)
  end,
  response_final = function(v) return "RESPONSE_FINAL #" .. (v.request_id or "") end,
  declare = declaration_text,
  interest = function(v, facts)
    local wanted = {}
    for _, pair in ipairs({{"K", "keyexprs"}, {"S", "subscribers"}, {"Q", "queryables"}, {"T", "tokens"}}) do
      if v[pair[1]] == 1 then wanted[#wanted + 1] = pair[2] end
    end
    return "INTEREST " .. (v.id or "") .. " " .. (N.InterestMode[v.mode] or "") .. " " .. concat(wanted, "|") .. " "
      .. key_shown(v, facts and facts.key)
  end,
  network_oam = function(v)
    return v.states and "OAM link state of " .. #v.states .. " nodes" or "OAM " .. (v.id or "")
  end,
  transport_oam = function(v) return "OAM " .. (v.id or "") .. " (transport)" end,
  init = function(v) return "INIT " .. (v.A == 1 and "ack " or "syn ") .. node_text(v) end,
  open = function(v)
    return "OPEN " .. (v.A == 1 and "ack" or "syn") .. (v.lease and string.format(" lease %.0f %s", v.lease,
      v.T == 1 and "s" or "ms") or "")
  end,
  close = function(v) return "CLOSE " .. (N.CloseReason[v.reason] or v.reason or "") end,
  keep_alive = function() return "KEEP_ALIVE" end,
  frame = function(v) return "FRAME" .. lane_text(v) end,
  fragment = function(v)
    return "FRAGMENT" .. lane_text(v) .. string.format(" %d B", (v.data_end or 0) - (v.data or 0))
      .. (v.M == 0 and " (last)" or "")
  end,
  join = function(v) return "JOIN " .. node_text(v) end,
  scout = function(v)
    local roles = {}
    for place, role in ipairs({"router", "peer", "client"}) do
      if floor((v.what or 0) / 2 ^ (place - 1)) % 2 == 1 then roles[#roles + 1] = role end
    end
    return "SCOUT for " .. concat(roles, "|")
  end,
  hello = function(v) return "HELLO " .. node_text(v) .. (v.locators and " at " .. shown(concat(v.locators, " ")) or "") end,
  unknown = function() return "unknown" end,
}

function message_text(v, facts)
  local told_of = string.gsub(TEXT[v.record](v, facts), "%s+$", "")
  if facts and facts.count then told_of = told_of .. " (" .. facts.count .. " fragments)" end
  if v.fault then told_of = told_of .. " !" .. v.fault end
  return told_of
end

-- Columns ----------------------------------------------------------------------------------------

local COLUMN_MESSAGES, COLUMN_TEXT = 8, 400
local STORY, STORY_MORE = {}, 0 -- of the packet being dissected

function story(v, told_of)
  if v.record == "frame" and not v.fault then return end
  if #STORY < COLUMN_MESSAGES then STORY[#STORY + 1] = told_of else STORY_MORE = STORY_MORE + 1 end
end

function forget_story()
  STORY, STORY_MORE = {}, 0
end

-- True when there was anything to tell.
function show_columns(pinfo)
  if #STORY == 0 then return end
  local columns = pinfo.cols
  columns.protocol = "Zenoh"
  local line = sub(concat(STORY, " | "), 1, COLUMN_TEXT)
  if STORY_MORE > 0 then line = line .. " | " .. STORY_MORE .. " more" end
  if line ~= "" then columns.info = shown(line) end
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
    PICKED[#PICKED + 1] = {lua_pattern(glob), name}
  end
end

local function payload_dissector(key, encoding)
  for _, pair in ipairs(PICKED) do
    if key and find(key, pair[1]) then return pair[2] end
  end
  return DISSECTOR_OF[string.match(encoding, "^[^;]*")]
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
function hand_on(t, pinfo, key, encoding, p, n)
  if n == 0 or n > proto.prefs.payload_limit then return end
  local name = payload_dissector(key, encoding)
  local dissector = name and dissector_called(name)
  if dissector then pcall(dissector.call, dissector, range(TVB, p, n):tvb(), pinfo, t) end
end

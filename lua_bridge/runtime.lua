-- Reading: bytes, numbers, texts and chains, each with its item in the tree.
--
-- B is the string being read and TVB the same bytes for Wireshark; positions count from 0. Readers take the
-- position p, the end e and the tree item t, and return the next position. Without t they only look: nothing
-- is shown, noted or told. A fault is an error value {kind, at}; whoever starts reading catches it.

local byte, sub, find, floor, min = string.byte, string.sub, string.find, math.floor, math.min
local add, set_len, set_text = TreeItem.add, TreeItem.set_len, TreeItem.set_text
local set_generated, append_text = TreeItem.set_generated, TreeItem.append_text
local range, concat = Tvb.range, table.concat

local B, TVB = "", nil
local OPEN = nil -- the message being read
local HANDING = false -- while another dissector has a payload, which may lead back here
local SEEN = nil -- while only looking: the messages found

local F, N, R, C, X, FAMILY = {}, {}, {}, {}, {}, {} -- fields, names of numbers, readers, choices, extensions
local EXPERT = {}
local told -- what happens when a message is read: set by the conversation

-- Wireshark wants every description once, too.
local TITLE = NAME == "zenoh" and "Zenoh" or "Zenoh (" .. NAME .. ")"
local made, proto = pcall(Proto, NAME, TITLE .. " Protocol")
if not made then
  error("Zenoh: another plugin already owns the name '" .. NAME .. "'. Remove it, or make this one under another name: "
    .. "scapy-zenoh lua --name my" .. NAME .. " --install", 0)
end

-- Fields -----------------------------------------------------------------------------------------

local FIELDS = {}

local function register(name, made_field)
  F[name] = made_field
  FIELDS[#FIELDS + 1] = made_field
end

local MAKE = {
  uint8 = function(a, n, names) return ProtoField.uint8(a, n, base.DEC, names) end,
  uint16 = function(a, n, names) return ProtoField.uint16(a, n, base.DEC, names) end,
  uint32 = function(a, n, names) return ProtoField.uint32(a, n, base.DEC, names) end,
  uint64 = function(a, n, names) return ProtoField.uint64(a, n, base.DEC, names) end,
  flag = function(a, n) return ProtoField.bool(a, n, base.NONE, {"set", "not set"}) end,
  text = function(a, n) return ProtoField.string(a, n) end,
  bytes = function(a, n) return ProtoField.bytes(a, n) end,
  time = function(a, n) return ProtoField.absolute_time(a, n, base.UTC) end,
  duration = function(a, n) return ProtoField.relative_time(a, n) end,
  frame = function(a, n, kind) return ProtoField.framenum(a, n, base.NONE, kind) end,
  none = function(a, n) return ProtoField.none(a, n) end,
}

local function field(name, label, kind, more)
  register(name, MAKE[kind](NAME .. "." .. name, label, more))
end

local function record_field(name, label)
  field(name, label, "none")
end

local function bit_field(name, label, mask, names)
  local single = mask == 1 or (mask == 2 or mask == 4 or mask == 8 or mask == 16 or mask == 32
    or mask == 64 or mask == 128)
  local abbreviation = NAME .. "." .. name
  if single and not names then
    register(name, ProtoField.bool(abbreviation, label, 8, {"set", "not set"}, mask))
  else
    register(name, ProtoField.uint8(abbreviation, label, base.DEC, names, mask))
  end
end

local EXPERTS = {}

local function expert_field(name, text, group, severity)
  EXPERT[name] = ProtoExpert.new(NAME .. "." .. name, text, group, severity)
  EXPERTS[#EXPERTS + 1] = EXPERT[name]
end

local function fault_kind(kind, about, severity)
  expert_field("fault." .. kind, kind .. ": " .. about, expert.group.MALFORMED, severity)
end

-- Faults -----------------------------------------------------------------------------------------

local function fault(kind, p)
  error({kind = kind, at = p}, 0)
end

-- A fault after which reading goes on.
local function noted(kind, t, p, n)
  if t then
    t:add_tvb_expert_info(EXPERT["fault." .. kind], range(TVB, p, n))
    if OPEN and not OPEN.fault then OPEN.fault = kind end
  end
end

-- Runs a reader; returns the next position, or nil and the fault. A mistake of ours is no fault and goes on.
local function attempt(reader, p, e, t, ...)
  local good, result = pcall(reader, p, e, t, ...)
  if good then return result end
  if type(result) ~= "table" or not result.kind then error(result, 0) end
  return nil, result
end

local function window(p, e, size)
  if p + size > e then fault("bad_length", p) end
  return p + size
end

local function filled(p, e)
  if p < e then fault("bad_length", p) end
end

local function one_of(names, value, p, kind)
  if not names[value] then fault(kind, p) end
end

-- Numbers ----------------------------------------------------------------------------------------

local SCALE = {[0] = 1, 128, 16384, 2097152, 268435456}
local SCALE_HIGH = {[5] = 8, [6] = 1024, [7] = 131072, [8] = 16777216}
local LIMIT = {[8] = 256, [16] = 65536, [32] = 4294967296}

-- A variable length integer: the next position and its two halves of 32 bits. Doubles lose bits after 2^53.
local function halves(p, e, bits, short)
  if p + 4 <= e and bits >= 32 then -- sequence numbers have four bytes: no loop for them
    local a, b, c, d = byte(B, p + 1, p + 4)
    if a < 128 then return p + 1, a, 0 end
    if b < 128 then return p + 2, a + b * 128 - 128, 0 end
    if c < 128 then return p + 3, a + b * 128 + c * 16384 - 16512, 0 end
    if d < 128 then return p + 4, a + b * 128 + c * 16384 + d * 2097152 - 2113664, 0 end
  end
  local lo, hi, q = 0, 0, p
  for i = 0, 8 do
    if q >= e then fault(short or "truncated", p) end
    local x = byte(B, q + 1)
    q = q + 1
    local digit = i < 8 and x % 128 or x -- the ninth byte carries eight bits
    if i < 4 then
      lo = lo + digit * SCALE[i]
    elseif i == 4 then
      lo, hi = lo + digit % 16 * SCALE[4], floor(digit / 16)
    else
      hi = hi + digit * SCALE_HIGH[i]
    end
    if x < 128 then break end
  end
  local limit = LIMIT[bits]
  if limit and (hi > 0 or lo >= limit) then fault("vle_overflow", p) end
  return q, lo, hi
end

local function joined(lo, hi)
  return hi == 0 and lo or lo + hi * 4294967296.0
end

local function vle(p, e, t, f, bits, short)
  local x = byte(B, p + 1)
  if p < e and x < 128 then
    if t then add(t, f, range(TVB, p, 1), x) end
    return p + 1, x
  end
  local q, lo = halves(p, e, bits, short)
  if t then add(t, f, range(TVB, p, q - p), lo) end
  return q, lo
end

local function vle64(p, e, t, f, short)
  local q, lo, hi = halves(p, e, 64, short)
  if t then add(t, f, range(TVB, p, q - p), UInt64(lo, hi)) end
  return q, joined(lo, hi)
end

-- Refuses a number before it is shown: one without a name, or one above the limit.
local function check(p, e, bits, names, most, kind, short)
  local _, lo, hi = halves(p, e, bits, short)
  if names and (hi > 0 or not names[lo]) or most and joined(lo, hi) > most then fault(kind, p) end
end

-- An NTP64 time: seconds since 1970 and a binary fraction. 10^9 / 2^32 = 1953125 / 2^23 keeps the product below 2^53.
local function time(p, e, t, f, short)
  local q, lo, hi = halves(p, e, 64, short)
  if t then add(t, f, range(TVB, p, q - p), NSTime(hi, floor(lo * 1953125 / 8388608))) end
  return q, hi
end

local function uint(p, e, t, f, size, short, names, kind)
  if p + size > e then fault(short or "truncated", p) end
  local value, scale = 0, 1
  for i = 1, size do
    value, scale = value + byte(B, p + i) * scale, scale * 256
  end
  if names then one_of(names, value, p, kind) end
  if t then add(t, f, range(TVB, p, size), value) end
  return p + size, value
end

local function octet(p, e, t, short)
  if p >= e then fault(short or "truncated", p) end
  return byte(B, p + 1), t and range(TVB, p, 1)
end

-- A variable length integer that several parts share: its width and halves.
local function vle_bits(p, e, _, bits, short)
  local q, lo, hi = halves(p, e, bits, short)
  return q - p, lo, hi
end

local function part(lo, hi, shift, size)
  local value
  if shift >= 32 then
    value = floor(hi / 2 ^ (shift - 32))
  elseif shift + size <= 32 then
    value = floor(lo / 2 ^ shift)
  else
    value = floor(lo / 2 ^ shift) + hi % 2 ^ (shift + size - 32) * 2 ^ (32 - shift)
  end
  return floor(value % 2 ^ size)
end

-- Reserved bits are shown only where they are used.
local function unused32(value, p, n, t, f)
  if t and value ~= 0 then add(t, f, range(TVB, p, n), value) end
end

-- The same for all bits from ``shift`` on.
local function unused(lo, hi, shift, p, n, t, f)
  if not t then return end
  if shift >= 32 then
    lo, hi = floor(hi / 2 ^ (shift - 32)), 0
  else
    lo = floor(lo / 2 ^ shift) + hi % 2 ^ shift * 2 ^ (32 - shift)
    hi = floor(hi / 2 ^ shift)
  end
  if lo ~= 0 or hi ~= 0 then add(t, f, range(TVB, p, n), UInt64(floor(lo), hi)) end
end

local function numbers(p, e, t, f, count, bits, short)
  local values = {}
  for i = 1, count do p, values[i] = vle(p, e, t, f, bits, short) end
  return p, values
end

local function numbers64(p, e, t, f, count, _, short)
  local values = {}
  for i = 1, count do p, values[i] = vle64(p, e, t, f, short) end
  return p, values
end

-- Bytes and texts --------------------------------------------------------------------------------

local function bytes(p, e, t, f, n)
  if p + n > e then fault("bad_length", p) end
  if t then add(t, f, range(TVB, p, n)) end
  return p + n
end

-- A text as it is shown: UTF-8 without zero bytes, which would end it for Wireshark.
local function shown(s)
  if not find(s, "[%z\128-\255]") then return s end
  if not utf8_valid(s) then s = utf8_shown(s) end
  return (string.gsub(s, "%z", "\226\144\128"))
end

local function text(p, e, t, f, n, lax)
  if p + n > e then fault("bad_length", p) end
  local s = sub(B, p + 1, p + n)
  if t then
    add(t, f, range(TVB, p, n), shown(s))
    if not lax and find(s, "[\128-\255]") and not utf8_valid(s) then noted("bad_utf8", t, p, n) end
  end
  return p + n, s
end

local ZIDS, zid_count = {}, 0

local function zid(p, e, t, f, n)
  if p + n > e then fault("bad_length", p) end
  local s = sub(B, p + 1, p + n)
  local id = ZIDS[s]
  if not id then -- the same few ids come again and again
    id = zid_text(s)
    zid_count = zid_count + 1
    if zid_count > 10000 then ZIDS, zid_count = {}, 0 end
    ZIDS[s] = id
  end
  if t then add(t, f, range(TVB, p, n), id) end
  return p + n, id
end

-- Texts with their lengths in front. One that cannot be read is a fault where it begins.
local function texts(p, e, t, f, count, bits, form, short)
  local values = {}
  for i = 1, count do
    local q, n = halves(p, e, bits, short)
    if q + n > e then fault("bad_length", p) end
    local s = sub(B, q + 1, q + n)
    local slash = find(s, "/", 1, true)
    local refused = form == "locator" and (not slash or slash == 1 or find(s, "#", 1, true))
    if t and not refused then add(t, f, range(TVB, p, q + n - p), shown(s)) end
    if form ~= "lax" and find(s, "[\128-\255]") and not utf8_valid(s) then noted("bad_utf8", t, q, n) end
    if refused then fault("bad_value", p) end
    values[i] = s
    p = q + n
  end
  return p, values
end

-- Records, bodies, lists -------------------------------------------------------------------------

-- Wireshark refuses more than a million items in a packet, and does not let Lua recover. A record has a dozen or so.
local MAX_RECORDS, RECORDS = 60000, 0

local function forget_records()
  RECORDS = 0
end

local function subtree(t, f, p, e)
  if not t then return nil end
  RECORDS = RECORDS + 1
  if RECORDS > MAX_RECORDS then fault("limit", p) end
  return add(t, f, range(TVB, p, e - p))
end

local function open(v)
  if v.item then
    OPEN = v
  elseif SEEN then
    SEEN[#SEEN + 1] = v
  end
  return v
end

local function records(p, e, t, count, reader, into, short)
  for _ = 1, count do
    if p >= e then fault(short or "truncated", p) end
    p = reader(p, e, t, into)
  end
  return p
end

local function choices(p, e, t, count, pick, into, short)
  for _ = 1, count do
    if p >= e then fault(short or "truncated", p) end
    p = pick(p, e)(p, e, t, into)
  end
  return p
end

local function body(p, e, t, family, v)
  if p >= e then fault("body_missing", p) end
  local reader = family[byte(B, p + 1) % 32]
  if not reader then fault("unknown_message", p) end
  return reader(p, e, t, v)
end

local function messages(p, e, t, family, ending)
  while p < e do
    local id = byte(B, p + 1) % 32
    local reader = family[id]
    if not reader then
      if ending and ending[id] then return p end
      open({record = "unknown", item = t, start = p})
      fault("unknown_message", p)
    end
    p = reader(p, e, t)
  end
  return p
end

-- True when all bytes from p to e are a count and that many good records.
local function readable(record, p, e)
  local function all(q, stop)
    local count, hi
    q, count, hi = halves(q, stop, 32)
    if hi > 0 or count > 65536 then fault("limit", q) end
    return records(q, stop, nil, count, R[record], {})
  end
  return attempt(all, p, e) == e
end

-- A look ahead, for choosing between records.
local function peek_byte(p, e)
  return p < e and byte(B, p + 1) or -1
end

-- How many integers fill the counted bytes at p exactly; 0 if they do not.
local function peek_vles(p, e)
  local size, scale = 0, 1
  repeat
    if p >= e or scale > 268435456 then return 0 end
    local x = byte(B, p + 1)
    p, size, scale = p + 1, size + x % 128 * scale, scale * 128
  until x < 128
  local stop, count = p + size, 0
  if stop > e then return 0 end
  while p < stop do
    local width = 1
    while width < 9 and byte(B, p + width) >= 128 do
      if p + width >= stop then return 0 end
      width = width + 1
    end
    p, count = p + width, count + 1
  end
  return count
end

-- Extensions -------------------------------------------------------------------------------------

local KNOWN = {} -- what is known of each extension, by name

local function extension(name, identity, options)
  KNOWN[name] = {name = name, identity = identity, reader = R[name], after = options and options.after,
    lenient = options and options.lenient}
end

-- The extensions of a message by header; where two share one, the more particular first.
local function extension_table(known, lenient)
  local by_header = {lenient = lenient}
  for _, name in ipairs(known) do
    local entry = KNOWN[name]
    local other = by_header[entry.identity]
    if other and entry.after then
      by_header[entry.identity] = {name = name, reader = entry.reader, after = entry.after, otherwise = other}
    elseif other then
      other.otherwise = entry
    else
      by_header[entry.identity] = entry
    end
  end
  return by_header
end

local function extension_header(p, t)
  if t then
    local r = range(TVB, p, 1)
    add(t, F["ext.more"], r)
    add(t, F["ext.enc"], r)
    add(t, F["ext.mandatory"], r)
    add(t, F["ext.eid"], r)
  end
  return p + 1
end

local UNKNOWN = {[0] = "ext.unit", [1] = "ext.z64", [2] = "ext.zbuf"}

local function extensions(p, e, t, known, into)
  local more
  repeat
    if p >= e then fault("chain_cut", p) end
    local h = byte(B, p + 1)
    more = h >= 128
    local entry = known[h % 128]
    if entry and entry.after and not into[entry.after] then entry = entry.otherwise end
    if entry and entry.lenient and not attempt(entry.reader, p, e, nil, {}) then entry = nil end
    if entry then
      p = entry.reader(p, e, t, into)
    else
      local name = UNKNOWN[floor(h / 32) % 4]
      if not name then fault("reserved_encoding", p) end
      local unread = known[h % 128] -- a lenient one
      local start = p
      p = R[name](p, e, t, into)
      if floor(h / 16) % 2 == 1 and not unread and not known.lenient then
        noted("unknown_mandatory_ext", t, start, p - start)
      end
    end
  until not more
  return p
end

local function has_ext(v, name)
  return v.exts and v.exts[name] ~= nil
end

-- Zenoh publications on TCP: FRAME, PUSH and PUT and nothing else, as one writes it by hand in an hour.
-- The measure for the generated plugin: see lua.py. Its names begin with zmin, so that both can be loaded.

local zmin = Proto("zmin", "Zenoh publications")

local FRAME, PUSH, PUT = 0x05, 0x1d, 0x01
local IDS = {[FRAME] = "FRAME", [PUSH] = "PUSH", [PUT] = "PUT"}

local f = zmin.fields
f.size = ProtoField.uint16("zmin.size", "Batch size")
f.id = ProtoField.uint8("zmin.id", "Id", base.HEX, IDS, 0x1f)
f.z = ProtoField.bool("zmin.z", "Extensions", 8, nil, 0x80)

f.frame = ProtoField.none("zmin.frame", "FRAME")
f.frame_r = ProtoField.bool("zmin.frame.r", "Reliable", 8, nil, 0x20)
f.frame_sn = ProtoField.uint32("zmin.frame.sn", "Sequence number")

f.push = ProtoField.none("zmin.push", "PUSH")
f.push_m = ProtoField.bool("zmin.push.m", "Sender's mapping", 8, nil, 0x40)
f.push_n = ProtoField.bool("zmin.push.n", "Suffix", 8, nil, 0x20)
f.push_scope = ProtoField.uint16("zmin.push.scope", "Scope")
f.push_suffix_len = ProtoField.uint16("zmin.push.suffix_len", "Suffix length")
f.push_suffix = ProtoField.string("zmin.push.suffix", "Suffix")

f.put = ProtoField.none("zmin.put", "PUT")
f.put_e = ProtoField.bool("zmin.put.e", "Encoding", 8, nil, 0x40)
f.put_t = ProtoField.bool("zmin.put.t", "Timestamp", 8, nil, 0x20)
f.put_time = ProtoField.absolute_time("zmin.put.time", "Time", base.UTC)
f.put_time_id = ProtoField.bytes("zmin.put.time_id", "Time set by")
f.put_encoding = ProtoField.uint32("zmin.put.encoding", "Encoding")
f.put_schema = ProtoField.string("zmin.put.schema", "Schema")
f.put_data_len = ProtoField.uint32("zmin.put.data_len", "Payload length")
f.put_data = ProtoField.bytes("zmin.put.data", "Payload")

-- A variable length integer: its value, its range, and where the next byte is.
local function vle(tvb, start)
  local value, scale, offset = 0, 1, start
  repeat
    local byte = tvb(offset, 1):uint()
    offset = offset + 1
    local last = byte < 128 or offset - start == 9
    value = value + (last and byte or byte - 128) * scale
    scale = scale * 128
  until last
  return value, tvb(start, offset - start), offset
end

local function has(header, flag)
  return math.floor(header / flag) % 2 == 1
end

local function skip_extensions(tvb, offset)
  local more
  repeat
    local header = tvb(offset, 1):uint()
    offset = offset + 1
    more = has(header, 0x80)
    local kind = math.floor(header / 32) % 4
    if kind > 0 then
      local value, _, after = vle(tvb, offset)
      offset = kind == 2 and after + value or after -- a length and its bytes, or a number
    end
  until not more
  return offset
end

local function read_put(tvb, offset, tree)
  local start, header = offset, tvb(offset, 1)
  local flags = header:uint()
  local item = tree:add(f.put, tvb(offset))
  item:add(f.z, header)
  item:add(f.put_e, header)
  item:add(f.put_t, header)
  item:add(f.id, header)
  offset = offset + 1
  local value, range, _
  if has(flags, 0x20) then
    value, range, offset = vle(tvb, offset)
    local seconds = math.floor(value / 2 ^ 32)
    item:add(f.put_time, range, NSTime(seconds, math.floor((value % 2 ^ 32) / 2 ^ 32 * 1e9)))
    value, _, offset = vle(tvb, offset)
    item:add(f.put_time_id, tvb(offset, value))
    offset = offset + value
  end
  if has(flags, 0x40) then
    value, range, offset = vle(tvb, offset)
    item:add(f.put_encoding, range, math.floor(value / 2))
    if value % 2 == 1 then
      value, _, offset = vle(tvb, offset)
      range = tvb(offset, value)
      item:add(f.put_schema, range, range:string(ENC_UTF_8))
      offset = offset + value
    end
  end
  if has(flags, 0x80) then offset = skip_extensions(tvb, offset) end
  value, range, offset = vle(tvb, offset)
  item:add(f.put_data_len, range, value)
  item:add(f.put_data, tvb(offset, value))
  offset = offset + value
  item:set_len(offset - start)
  return offset
end

local function read_push(tvb, offset, tree)
  local start, header = offset, tvb(offset, 1)
  local flags = header:uint()
  local item = tree:add(f.push, tvb(offset))
  item:add(f.z, header)
  item:add(f.push_m, header)
  item:add(f.push_n, header)
  item:add(f.id, header)
  local value, range
  value, range, offset = vle(tvb, offset + 1)
  item:add(f.push_scope, range, value)
  if has(flags, 0x20) then
    value, range, offset = vle(tvb, offset)
    item:add(f.push_suffix_len, range, value)
    range = tvb(offset, value)
    item:add(f.push_suffix, range, range:string(ENC_UTF_8))
    offset = offset + value
  end
  if has(flags, 0x80) then offset = skip_extensions(tvb, offset) end
  if tvb(offset, 1):uint() % 32 ~= PUT then return nil end
  offset = read_put(tvb, offset, item)
  item:set_len(offset - start)
  return offset
end

local function read_frame(tvb, offset, tree, pinfo)
  local start, header = offset, tvb(offset, 1)
  local flags = header:uint()
  local item = tree:add(f.frame, tvb(offset))
  item:add(f.z, header)
  item:add(f.frame_r, header)
  item:add(f.id, header)
  local sn, range
  sn, range, offset = vle(tvb, offset + 1)
  item:add(f.frame_sn, range, sn)
  if has(flags, 0x80) then offset = skip_extensions(tvb, offset) end
  local count = 0
  while offset < tvb:len() and tvb(offset, 1):uint() % 32 == PUSH do
    offset = read_push(tvb, offset, item)
    if not offset then return nil end
    count = count + 1
  end
  item:set_len(offset - start)
  pinfo.cols.info = "FRAME " .. sn .. " with " .. count .. " PUSH"
  return offset
end

local function batch_length(tvb, _, offset)
  return tvb(offset, 2):le_uint() + 2
end

-- Up to the first message that is not of these kinds: it does not tell how long it is.
local function read_batch(tvb, pinfo, tree)
  pinfo.cols.protocol = "Zenoh"
  local item = tree:add(zmin, tvb())
  item:add_le(f.size, tvb(0, 2))
  local offset = 2
  while offset and offset < tvb:len() and tvb(offset, 1):uint() % 32 == FRAME do
    offset = read_frame(tvb, offset, item, pinfo)
  end
  return tvb:len()
end

function zmin.dissector(tvb, _, tree)
  dissect_tcp_pdus(tvb, tree, 2, batch_length, read_batch)
  return tvb:len()
end

DissectorTable.get("tcp.port"):add(7447, zmin)

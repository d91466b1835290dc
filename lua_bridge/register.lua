-- For the other parts:
--
-- What Wireshark is told: fields, preferences, ports, heuristics, statistics, menus.

field("msg", "Message", "text")
field("keyexpr", "Key expression", "text")
field("srczid", "Source ZID", "text")
field("dstzid", "Destination ZID", "text")
field("sn", "Sequence number", "uint64")
field("rid", "Request id", "uint32")
field("payload", "Payload", "bytes")
field("payload_len", "Payload length", "uint32")
field("encoding", "Encoding", "text")
field("request_in", "Request in", "frame", frametype.REQUEST)
field("response_in", "First response in", "frame", frametype.RESPONSE)
field("final_in", "Final in", "frame", frametype.RESPONSE)
field("response_time", "Time since the request", "duration")
field("declared_in", "Declared in", "frame")
field("interest_in", "Interest in", "frame", frametype.REQUEST)
field("interest_final_in", "All current declarations sent by", "frame", frametype.RESPONSE)
field("reassembled_in", "Reassembled in", "frame")
field("fragment_in", "Fragment in", "frame")
record_field("whole", "Reassembled message")
record_field("unknown", "Unknown message")
record_field("undecoded", "Rest of what could not be read")
record_field("malformed", "Malformed: cannot be read")
field("fault", "Fault", "text")
field("note", "Note", "text")
field("batch.size", "Size", "uint32")
bit_field("batch.c", "C (compressed)", 0x01)
bit_field("batch.reserved", "Reserved", 0xfe)
record_field("serial", "Zenoh serial frame")
bit_field("serial.reset", "Reset", 0x04)
bit_field("serial.ack", "Ack", 0x02)
bit_field("serial.init", "Init", 0x01)
field("serial.length", "Length", "uint16")
field("serial.crc", "Checksum", "uint32")

proto.fields = FIELDS
proto.experts = EXPERTS

-- Preferences ------------------------------------------------------------------------------------

proto.prefs.tcp_ports = Pref.range("TCP ports", "7447", "Read as Zenoh, also inside TLS and WebSocket", 65535)
proto.prefs.udp_ports = Pref.range("UDP ports", "7447", "Read as Zenoh", 65535)
proto.prefs.scouting_ports = Pref.range("Scouting ports", "7446", "UDP ports of SCOUT and HELLO", 65535)
proto.prefs.heuristics = Pref.bool("Find Zenoh on other ports", true,
  "By its handshake, by HELLO, and on the ports that nodes announce")
proto.prefs.payload_limit = Pref.uint("Longest payload handed on", 65536,
  "Payloads up to this many bytes are given to the dissector of their encoding; 0 hands on none")
proto.prefs.payload_dissectors = Pref.string("Dissectors of keys", "",
  "Key patterns and the dissectors of their payloads: demo/**=json, rt/*/pose=protobuf")

local tls_entry = Proto(NAME .. "_tls", TITLE .. " over TLS")
local websocket_entry = Proto(NAME .. "_ws", TITLE .. " over WebSocket")
local scouting_entry = Proto(NAME .. "_scouting", TITLE .. " scouting")
local serial_entry = Proto(NAME .. "_serial", TITLE .. " on a serial line")

-- A number or a range of ports, as the preferences hold them, to a set.
local function port_set(text_of)
  local ports = {}
  for low, high in string.gmatch(tostring(text_of), "(%d+)%-?(%d*)") do
    for port = tonumber(low), tonumber(high) or tonumber(low) do ports[port] = true end
  end
  return ports
end

local PT_UDP = 3

function proto.dissector(tvb, pinfo, tree)
  if pinfo.port_type == PT_UDP then return dissect_datagram(tvb, pinfo, tree, true, false) end
  return dissect_stream(tvb, pinfo, tree, "tcp", true)
end

function scouting_entry.dissector(tvb, pinfo, tree)
  return dissect_datagram(tvb, pinfo, tree, known_port(pinfo, PORTS.udp), true)
end

function tls_entry.dissector(tvb, pinfo, tree)
  return dissect_stream(tvb, pinfo, tree, "tls", true)
end

websocket_entry.dissector = dissect_websocket
serial_entry.dissector = dissect_serial

-- Ports: those of the preferences take the place of those before.

local BOUND = {}

local function dissector_table(name)
  local good, found = pcall(DissectorTable.get, name)
  return good and found or nil
end

local function bind(table_name, ports, entry)
  local found = dissector_table(table_name)
  if not found then return end
  local before = BOUND[table_name .. entry.name]
  if before == ports then return end -- what the user decides about these ports stays
  if before then found:remove(before, entry) end
  if ports ~= "" then found:add(ports, entry) end
  BOUND[table_name .. entry.name] = ports
end

local function bind_all()
  local prefs = proto.prefs
  local tcp, udp, scouting = tostring(prefs.tcp_ports), tostring(prefs.udp_ports), tostring(prefs.scouting_ports)
  PORTS.tcp, PORTS.udp = port_set(tcp), port_set(udp)
  bind("tcp.port", tcp, proto)
  bind("udp.port", udp, proto)
  bind("udp.port", scouting, scouting_entry)
  bind("tls.port", tcp, tls_entry)
  bind("ws.port", tcp, websocket_entry)
  pick_dissectors(prefs.payload_dissectors)
end

bind_all()
proto.prefs_changed = bind_all

for _, name in ipairs({"tcp.port", "udp.port"}) do dissector_table(name):add_for_decode_as(proto) end

-- Heuristics: only what cannot be anything else, and the ports that nodes have announced.

proto:register_heuristic("tcp", function(tvb, pinfo, tree)
  if not proto.prefs.heuristics then return false end
  return dissect_stream(tvb, pinfo, tree, "tcp", known_port(pinfo, PORTS.tcp)) > 0
end)

proto:register_heuristic("udp", function(tvb, pinfo, tree)
  if not proto.prefs.heuristics then return false end
  return dissect_datagram(tvb, pinfo, tree, known_port(pinfo, PORTS.udp), false) > 0
end)

tls_entry:register_heuristic("tls", function(tvb, pinfo, tree)
  if not proto.prefs.heuristics then return false end
  return dissect_stream(tvb, pinfo, tree, "tls", known_port(pinfo, PORTS.tcp)) > 0
end)

websocket_entry:register_heuristic("ws", function(tvb, pinfo, tree)
  if not proto.prefs.heuristics then return false end
  return dissect_websocket(tvb, pinfo, tree) > 0
end)

function proto.init()
  forget_packets()
  forget_links()
  forget_sessions()
  forget_telling()
  forget_counts()
  forget_story()
  bind_all()
end

-- Statistics -------------------------------------------------------------------------------------

for _, entry in ipairs(TABLES) do
  local name, title, write = entry[1], entry[2], entry[3]
  register_stat_cmd_arg(NAME .. "," .. name, function()
    local listener = Listener.new("frame")
    function listener.draw() io.write(write()) end
  end)
  if gui_enabled() then
    register_menu(TITLE .. "/" .. title, function()
      local window_of = TextWindow.new("Zenoh: " .. title)
      window_of:set(write())
      window_of:add_button("Refresh", function() window_of:set(write()) end)
    end, MENU_TOOLS_UNSORTED)
  end
end

set_plugin_info({version = VERSION, author = "scapy-zenoh", description = "Zenoh, from the classes of scapy-zenoh"})

-- For the other parts: PORTS LINKS known_port ends_of holder_of become_zenoh new_handshake forget_links
--
-- Which link a packet belongs to, and which ports are Zenoh's.

PORTS = {tcp = {}, udp = {}} -- from preferences, and from what nodes say of themselves
LINKS = {} -- by ends

function known_port(pinfo, ports)
  return ports[pinfo.src_port] or ports[pinfo.dst_port]
end

-- A node says where it listens: that port is Zenoh's.
local function learn_locators(locators)
  for _, locator in ipairs(locators or {}) do
    local kind, port = string.match(locator, "^(%a+)/.+:(%d+)")
    if port then
      local ports = (kind == "udp" or kind == "quic") and PORTS.udp or PORTS.tcp
      ports[tonumber(port)] = ports[tonumber(port)] or "announced"
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

function ends_of(pinfo)
  return " " .. tostring(pinfo.src) .. "/" .. pinfo.src_port, " " .. tostring(pinfo.dst) .. "/" .. pinfo.dst_port
end

-- What is known of the bytes between two ends, and the direction of this packet.
function holder_of(pinfo, kind)
  local from, to = ends_of(pinfo)
  local way = kind .. from .. to
  local known = LINKS[way]
  if not known then
    local holder = {streams = {{}, {}}}
    known = {holder, 1}
    LINKS[way], LINKS[kind .. to .. from] = known, {holder, 2}
  end
  return known[1], known[2]
end

function become_zenoh(holder, ordered, framing, multicast)
  holder.link, holder.other = new_link(ordered, multicast), false
  if framing ~= "plain" then holder.link.framing = framing end
end

-- An INIT on a link that was open before: the ends are used again.
function new_handshake(link, s, p)
  if not link or link.multicast or not (link.switched[1] or link.switched[2] or link.closed) then return false end
  return byte(s, p + 1) % 64 == 1 and byte(s, p + 2) == VERSION_BYTE
end

function forget_links()
  LINKS = {}
end

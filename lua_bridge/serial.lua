-- For the other parts: dissect_serial
--
-- Serial lines.

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
  if HANDING then return 0 end
  local visit = begin(pinfo, tree)
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
          local entry = visit.first and remember(call, {}) or call and call[count]
          if entry then show_batch(root, entry, 3, 3 + length, 0, link, direction, "plain") end
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

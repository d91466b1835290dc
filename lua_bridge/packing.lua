-- For the other parts: lz4_block cobs_decode serial_crc utf8_valid utf8_shown zid_text
--
-- How bytes are packed: LZ4 blocks, COBS frames, their checksum, texts and ids.
-- Nothing here needs Wireshark. Each verdict is that of the Python reader: tests/lua/test_packing.py compares them.

-- A length that did not fit in its half of the token: bytes to add, up to the first below 255.
-- `last` is the last place where such a byte may stand.
local function lz4_length(data, p, length, last)
  repeat
    if p > last then return nil end
    local more = data:byte(p)
    length = length + more
    p = p + 1
  until more < 255
  return length, p
end

-- The content of one LZ4 block, at most `limit` bytes; nil if liblz4 (LZ4_decompress_safe) would refuse the block.
-- It does not check the end of a block as the format has it: with room to spare in input and output (`roomy`) it
-- takes a short cut that checks less, elsewhere it asks what an encoder has to keep. The numbers are those of its code.
--
-- The output is `done .. tail`, where `tail` is short because appending copies it. 64 kB of messages take 2 ms, against
-- 4 ms with a table of bytes; the worst case, 16000 matches of four bytes, takes 9 ms against 7 ms.
function lz4_block(data, limit)
  local byte, sub, floor = string.byte, string.sub, math.floor
  local size, p = #data, 1
  local done, tail = "", ""
  local done_size, out = 0, 0 -- of `done`, of all output
  while p <= size do -- fails for empty data only: the checks below leave a byte for the next token
    local token = byte(data, p)
    local literals, match = floor(token / 16), token % 16
    p = p + 1

    local roomy = literals < 15 and p <= size - 16 and out <= limit - 32
    if literals == 15 then
      literals, p = lz4_length(data, p, literals, size - 15)
      if not literals then return nil end
    end
    if not roomy and (out + literals > limit - 12 or p + literals > size - 7) then -- no match can follow
      if p + literals ~= size + 1 or out + literals > limit then return nil end
      return done .. tail .. sub(data, p)
    end
    local fresh = literals > 0 and sub(data, p, p + literals - 1) or ""
    p = p + literals
    out = out + literals

    local low, high = byte(data, p, p + 1)
    local offset = low + 256 * high
    p = p + 2
    if offset > out then return nil end
    local length = match + 4
    if match == 15 then
      length, p = lz4_length(data, p, length, size - 4)
      if not length then return nil end
    end
    if out + length > limit - 5 and not (roomy and match < 15 and offset >= 8) then return nil end

    local from = out - offset
    local to = from + length
    if to <= done_size then
      tail = tail .. fresh .. sub(done, from + 1, to)
    else
      tail = tail .. fresh
      local copy
      if from >= done_size then
        copy = sub(tail, from - done_size + 1, to - done_size)
      else
        copy = sub(done, from + 1) .. sub(tail, 1, to - done_size)
      end
      if offset == 0 then -- means nothing; liblz4 writes zeros
        copy = ("\0"):rep(length)
      elseif offset < length then -- the match copies what it has just written
        copy = sub(copy:rep(floor(length / offset) + 1), 1, length)
      end
      tail = tail .. copy
    end
    out = out + length
    if #tail > 1024 then
      done, tail, done_size = done .. tail, "", out
    end
  end
  return nil
end

-- The content of a COBS frame given without the zero that ends it; nil if it is malformed.
function cobs_decode(data)
  if data:find("\0", 1, true) then return nil end
  local pieces, p = {}, 1
  while p <= #data do
    local code = data:byte(p)
    local next_p = p + code
    if next_p > #data + 1 then return nil end
    pieces[#pieces + 1] = data:sub(p + 1, next_p - 1)
    if code < 255 and next_p <= #data then pieces[#pieces + 1] = "\0" end
    p = next_p
  end
  return table.concat(pieces)
end

-- The checksum of Zenoh's serial frames: CRC-32 with its polynomial not reflected, as all nodes compute it.
-- There is no xor in all versions of Lua, so it is looked up digit by digit (of four bits).
do
  local floor = math.floor

  local xor = { [0] = 0 } -- of the digits a and b, at 16 * a + b
  for i = 1, 255 do
    local a, b = floor(i / 16), i % 16
    xor[i] = 2 * xor[16 * floor(a / 2) + floor(b / 2)] + (a + b) % 2
  end

  local polynomial = { [0] = 7, 11, 13, 1, 1, 12, 4, 0 } -- 0x04c11db7, the lowest digit first

  -- What a byte adds to the checksum when it is shifted out: eight digits, the lowest first, times 16 for `xor`.
  local shifted = {}
  for byte = 0, 255 do
    local crc = { [0] = byte % 16, floor(byte / 16), 0, 0, 0, 0, 0, 0, 0 }
    for _ = 1, 8 do
      local odd = crc[0] % 2
      for k = 0, 7 do
        crc[k] = xor[16 * (floor(crc[k] / 2) + 8 * (crc[k + 1] % 2)) + odd * polynomial[k]]
      end
    end
    for k = 0, 7 do crc[k] = 16 * crc[k] end
    shifted[byte] = crc
  end

  -- Unrolled: 1500 bytes take 0.5 ms.
  function serial_crc(data)
    local a, b, c, d, e, f, g, h = 15, 15, 15, 15, 15, 15, 15, 15 -- its digits, the lowest first
    for i = 1, #data do
      local byte = data:byte(i)
      local add = shifted[xor[16 * a + byte % 16] + 16 * xor[16 * b + floor(byte / 16)]]
      a = xor[add[0] + c]
      b = xor[add[1] + d]
      c = xor[add[2] + e]
      d = xor[add[3] + f]
      e = xor[add[4] + g]
      f = xor[add[5] + h]
      g = xor[add[6]]
      h = xor[add[7]]
    end
    local low, high = a + 16 * b + 256 * c + 4096 * d, e + 16 * f + 256 * g + 4096 * h
    return 0xffffffff - (low + 65536 * high)
  end
end

-- The bytes of the UTF-8 character at `p`; if there is none, nil and the bytes that one U+FFFD stands for: those
-- that could have begun a character (Unicode 3.9, table 3-7, and "substitution of maximal subparts").
local function utf8_size(s, p)
  local lead = s:byte(p)
  if lead < 0x80 then return 1 end
  if lead < 0xc2 or lead > 0xf4 then return nil, 1 end
  local more = lead < 0xe0 and 1 or lead < 0xf0 and 2 or 3
  local low, high = 0x80, 0xbf
  if lead == 0xe0 then low = 0xa0 -- below it is overlong
  elseif lead == 0xed then high = 0x9f -- above it are surrogates
  elseif lead == 0xf0 then low = 0x90 -- below it is overlong
  elseif lead == 0xf4 then high = 0x8f -- above it is more than U+10FFFF
  end
  for i = 1, more do
    local byte = s:byte(p + i)
    if not byte or byte < low or byte > high then return nil, i end
    low, high = 0x80, 0xbf
  end
  return more + 1
end

-- Whether Python's decode("utf-8") takes these bytes.
function utf8_valid(s)
  local p = s:find("[\128-\255]")
  while p do
    local size = utf8_size(s, p)
    if not size then return false end
    p = s:find("[\128-\255]", p + size)
  end
  return true
end

-- What Python's decode("utf-8", "replace") makes of these bytes, as UTF-8.
function utf8_shown(s)
  local pieces, from = {}, 1
  local p = s:find("[\128-\255]")
  while p do
    local size, bad = utf8_size(s, p)
    if not size then
      pieces[#pieces + 1] = s:sub(from, p - 1) .. "\239\191\189"
      from = p + bad
    end
    p = s:find("[\128-\255]", p + (size or bad))
  end
  return table.concat(pieces) .. s:sub(from)
end

-- The text of an id on the wire, as Zenoh prints it: the little-endian number in hexadecimal, no leading zero.
-- An id that ends in zero bytes (no node makes one) keeps them as leading 00.
function zid_text(s)
  local digits = s:reverse():gsub(".", function(char) return ("%02x"):format(char:byte()) end)
  local last = s:byte(-1)
  return last and last > 0 and last < 16 and digits:sub(2) or digits
end

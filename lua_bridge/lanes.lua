-- For the other parts: WINDOW lane_key see assemble
--
-- Lanes: which sequence numbers are missing, and messages put together from fragments, without false alarms.

local MAX_RUNS, MAX_WAITING, MAX_REASSEMBLY = 4, 256, 67108864
WINDOW = 64 -- how far a late sequence number may lag behind
local DEFAULT_LANE = 5

function lane_key(session, v)
  local lane = v.exts and v.exts["ext.lane"]
  local priority = session.qos == false and DEFAULT_LANE or lane and lane.priority or DEFAULT_LANE
  return priority * 2 + (v.R or 1)
end

-- The last fragment of a message is followed by a number that is not used.
local function after_fragments(lane, number)
  return lane.ends[(number - 1) % (lane.mask + 1)]
end

-- A number far from the others: damage, or many missing. The next one decides. Returns how many are missing.
local function far(lane, sn)
  local size, missing = lane.mask + 1, 0
  local step = lane.jump and (sn - lane.jump) % size
  if step == 1 or step == 2 then
    missing = (lane.jump - lane.last) % size - 1
    lane.last, lane.jump = sn, nil
  else
    lane.jump = sn
  end
  return missing
end

-- Takes the number of a FRAME or FRAGMENT; returns how many turned out to be missing. ``mark`` tells its batch from
-- another one with the same number.
function see(lane, sn, ends_fragments, ordered, mark)
  local size = lane.mask + 1
  local width = min(WINDOW, floor(size / 4))
  if sn > lane.mask then return 0 end
  lane.recent[sn] = mark
  lane.age = lane.age + 1
  if lane.age > WINDOW then -- old ends would hide gaps when numbers come round again
    lane.age = 0
    for _, old in ipairs({lane.ends, lane.recent}) do
      for number in pairs(old) do
        if (sn - number) % size > width then old[number] = nil end
      end
    end
  end
  if ends_fragments then lane.ends[sn] = true end
  if not lane.last then
    lane.last = sn
    return 0
  end
  local ahead = (sn - lane.last) % size
  if ahead == 0 then return 0 end
  if ahead > floor(lane.mask / 2) then
    if lane.awaited[sn] then
      lane.awaited[sn] = nil
    elseif (lane.last - sn) % size > width then
      return far(lane, sn)
    end
    return 0
  end
  if ahead > width then return far(lane, sn) end
  lane.jump = nil
  local missing = 0
  for step = 1, ahead - 1 do
    local skipped = (lane.last + step) % size
    if not after_fragments(lane, skipped) then
      if ordered then missing = missing + 1 else lane.awaited[skipped] = true end
    end
  end
  lane.last = sn
  if next(lane.awaited) then
    for number in pairs(lane.awaited) do
      if (sn - number) % size > width then
        lane.awaited[number] = nil
        if not after_fragments(lane, number) then missing = missing + 1 end
      end
    end
  end
  return missing
end

-- Fragments --------------------------------------------------------------------------------------

local function take_run(assembler, sn)
  local run = assembler.runs[sn]
  if run then
    assembler.runs[sn] = nil
    for i, number in ipairs(assembler.order) do
      if number == sn then table.remove(assembler.order, i) break end
    end
  end
  return run
end

-- Adds slices to a run as long as they follow each other; returns the message when it is complete.
local function extend(assembler, run, sn, slice)
  while true do
    run.slices[#run.slices + 1] = slice.bytes
    run.frames[#run.frames + 1] = slice.frame
    run.size = run.size + #slice.bytes
    slice.run, slice.bytes = run, nil
    if not slice.more then
      local whole = concat(run.slices)
      run.slices = {}
      return whole, run
    end
    if run.size > MAX_REASSEMBLY then
      run.slices = {}
      return nil, nil, "limit"
    end
    sn = (sn + 1) % (assembler.mask + 1)
    slice = assembler.waiting[sn]
    if not slice then break end
    assembler.waiting[sn] = nil
  end
  local lost
  if #assembler.order >= MAX_RUNS then
    assembler.runs[table.remove(assembler.order, 1)] = nil
    lost = "incomplete_fragments"
  end
  take_run(assembler, sn)
  assembler.runs[sn] = run
  assembler.order[#assembler.order + 1] = sn
  return nil, nil, lost
end

-- Takes a fragment; returns the whole message and its run when this completes it, else maybe a finding.
function assemble(assembler, sn, slice, first, drop)
  if drop then
    return nil, nil, take_run(assembler, sn) and "incomplete_fragments" or nil
  end
  local run
  if first then
    assembler.marked = true
    run = {slices = {}, frames = {}, size = 0}
  else
    run = take_run(assembler, sn)
    if not run and not assembler.marked and #assembler.order == 0 and not next(assembler.waiting) then
      run = {slices = {}, frames = {}, size = 0} -- releases before 1.0.4 do not mark the first
    end
  end
  if run then return extend(assembler, run, sn, slice) end
  if not assembler.waiting[sn] then
    assembler.queue[#assembler.queue + 1] = sn
    if #assembler.queue > MAX_WAITING then assembler.waiting[table.remove(assembler.queue, 1)] = nil end
  end
  assembler.waiting[sn] = slice
end

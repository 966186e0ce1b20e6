-- SPDX-License-Identifier: Apache-2.0
-- Wireshark's dissector for the packets of `warpline message` (docs/message_format.md), version 2.
--
--   wireshark -X lua_script:share/wireshark/warpline_message.lua CAPTURE
--
-- or for good: copy it into the folder that Help, About, Folders calls "Personal Lua Plugins". Sessions are recognised
-- on any port; `-d udp.port==PORT,warpline` takes everything on one port for ours. Wireshark 3.6 or later, which
-- from 4.4 on runs no scripts for root.

local warpline = Proto("warpline", "Warpline messages")

local MAGIC, VERSION = 0x57, 2
local PREFIX_LENGTH, HEADER_LENGTH, ACK_LENGTH, FRAGMENT_LENGTH, TAG_LENGTH, PATH_CHECK_LENGTH = 4, 28, 16, 20, 16, 16
local MOST_ACK_WORDS = 16
local TYPES = { [0] = "hello", "challenge", "accept", "reject", "session", "reset" }
local KINDS = { "request", "response", "message", "cancel", "refuse", "busy", "grant", "grant response", "busy response",
  "go away" }
local REASONS = { "no room for a session", "another version", "takes no sessions", "other terms" }
local REFUSALS = { "message too long", "declined", "stalled", "expired", "going away", [8] = "takes no streams" }
local PATH_KINDS = { "challenge", "response" }
local STREAM_KINDS = { "open", "piece", "end", "credit", "answer" }
local STREAM_HEAD = 20
local TIME_LEFT, MOST_METADATA = 8, 1024
local HEAD_PREFIX = 2
local SESSION = 4

local f = {
  magic = ProtoField.uint8("warpline.magic", "Magic", base.HEX),
  version = ProtoField.uint8("warpline.version", "Version", base.DEC, nil, 0xf0),
  type = ProtoField.uint8("warpline.type", "Type", base.DEC, TYPES, 0x0f),
  parse = ProtoField.string("warpline.parse", "Well-formed"),
  unused = ProtoField.bytes("warpline.unused", "Unused, zero"),
  rest = ProtoField.bytes("warpline.rest", "Not understood"),

  flags = ProtoField.uint8("warpline.flags", "Flags", base.HEX),
  has_ack = ProtoField.bool("warpline.flags.ack", "Acknowledgement", 8, nil, 0x01),
  has_fragment = ProtoField.bool("warpline.flags.fragment", "Fragment", 8, nil, 0x02),
  prompt = ProtoField.bool("warpline.flags.prompt", "Acknowledge without waiting", 8, nil, 0x04),
  ping = ProtoField.bool("warpline.flags.ping", "Acknowledge though there is no fragment", 8, nil, 0x08),
  close = ProtoField.bool("warpline.flags.close", "The session ends", 8, nil, 0x10),
  protected = ProtoField.bool("warpline.flags.protected", "Payload is encrypted, a tag follows", 8, nil, 0x20),
  bundle = ProtoField.bool("warpline.flags.bundle", "The payload goes on with further messages, or checks the path", 8, nil, 0x40),
  ack_words = ProtoField.uint8("warpline.ack.word_count", "Words of the acknowledgement"),
  session = ProtoField.uint32("warpline.session", "Session", base.HEX),
  followed = ProtoField.bool("warpline.flags.followed", "Another session's packet follows", 8, nil, 0x80),
  cookie = ProtoField.uint64("warpline.cookie", "Cookie", base.HEX),
  number = ProtoField.uint64("warpline.packet_number", "Packet number"),
  distance = ProtoField.uint16("warpline.floor_distance", "Distance to the oldest packet that may be acknowledged"),
  payload_length = ProtoField.uint16("warpline.payload_length", "Payload length"),
  payload = ProtoField.bytes("warpline.payload", "Payload"),
  tag = ProtoField.bytes("warpline.tag", "Tag"),

  cumulative = ProtoField.uint32("warpline.ack.cumulative", "All below arrived or were given up (low half)"),
  delay = ProtoField.uint32("warpline.ack.delay", "Delay, ns"),
  marked = ProtoField.uint32("warpline.ack.marked", "Packets with Congestion Experienced"),
  room = ProtoField.uint32("warpline.room", "Room, bytes"),
  word = ProtoField.uint64("warpline.ack.word", "Arrived", base.HEX),

  kind = ProtoField.uint8("warpline.fragment.kind", "Kind", base.DEC, KINDS, 0x0f),
  more = ProtoField.bool("warpline.fragment.more", "The next message continues this one", 8, nil, 0x80),
  slot = ProtoField.uint8("warpline.fragment.slot", "Slot"),
  code = ProtoField.uint16("warpline.fragment.code", "Code"),
  sequence = ProtoField.uint32("warpline.fragment.sequence", "Sequence"),
  offset = ProtoField.uint32("warpline.fragment.offset", "Offset"),
  total = ProtoField.uint32("warpline.fragment.total", "Message length"),
  order = ProtoField.uint16("warpline.fragment.order", "Order"),
  head = ProtoField.uint16("warpline.fragment.head", "Head, bytes"),
  time_left = ProtoField.uint64("warpline.time_left", "Time left, ns"),
  head_follows = ProtoField.bool("warpline.fragment.head_follows", "The head's length precedes the payload", 8, nil, 0x40),
  size = ProtoField.uint16("warpline.fragment.size", "Fragment size"),
  stream = ProtoField.bool("warpline.fragment.stream", "Of a stream", 8, nil, 0x20),
  high = ProtoField.bool("warpline.fragment.high", "Goes before others", 8, nil, 0x10),
  stream_kind = ProtoField.uint8("warpline.stream.kind", "Stream", base.DEC, STREAM_KINDS),
  stream_to = ProtoField.uint32("warpline.stream.to", "The receiver's number of the stream", base.HEX),
  stream_from = ProtoField.uint32("warpline.stream.from", "The sender's number of the stream", base.HEX),
  stream_number = ProtoField.uint32("warpline.stream.number", "Number of the piece, or how many there were"),
  stream_credit = ProtoField.uint32("warpline.stream.credit", "Credit so far"),
  padding = ProtoField.bytes("warpline.padding", "Padding"),
  path_kind = ProtoField.uint8("warpline.path.kind", "Path", base.DEC, PATH_KINDS),
  path_time = ProtoField.uint32("warpline.path.time", "Token's time"),
  path_token = ProtoField.uint64("warpline.path.token", "Token", base.HEX),

  nonce = ProtoField.uint64("warpline.nonce", "Nonce of who opens the session", base.HEX),
  token = ProtoField.uint64("warpline.token", "Token", base.HEX),
  token_time = ProtoField.uint32("warpline.token_time", "Token's time"),
  server_nonce = ProtoField.uint64("warpline.server_nonce", "Nonce of who accepts it", base.HEX),
  server_session = ProtoField.uint32("warpline.server_session", "Session of who accepts it", base.HEX),
  key = ProtoField.uint64("warpline.key", "Key's id", base.HEX),
  share = ProtoField.bytes("warpline.share", "Public half of a key pair, X25519"),
  proof = ProtoField.bytes("warpline.proof", "Proof of the key"),
  reason = ProtoField.uint16("warpline.reason", "Reason", base.DEC, REASONS),
  datagram = ProtoField.uint16("warpline.terms.datagram_bytes", "Most UDP payload that it takes"),
  go_back_n = ProtoField.bool("warpline.terms.go_back_n", "Go-back-n", 8, nil, 0x01),
  ordered = ProtoField.bool("warpline.terms.ordered", "Messages in order", 8, nil, 0x02),
  is_protected = ProtoField.bool("warpline.terms.protected", "Protected", 8, nil, 0x04),
  grants = ProtoField.bool("warpline.terms.grants", "Grants what is long", 8, nil, 0x08),
  bundles = ProtoField.bool("warpline.terms.bundles", "Takes several small messages in a packet", 8, nil, 0x10),
  max_ack_delay = ProtoField.uint32("warpline.terms.max_ack_delay", "Acknowledgements wait at most, ns"),
}
warpline.fields = f

local malformed = ProtoExpert.new("warpline.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
local foreign = ProtoExpert.new("warpline.foreign", "Not understood", expert.group.UNDECODED, expert.severity.WARN)
warpline.experts = { malformed, foreign }

local function bit_set(byte, mask) return math.floor(byte / mask) % 2 == 1 end

local function zero(tvb, from, to)
  for at = from, to - 1 do
    if tvb(at, 1):uint() ~= 0 then return false end
  end
  return true
end

-- What stands where in the packets that are not of a session: { offset, length, field }. `terms`: where they begin;
-- `unused`: from where to where it must be zero; `protected`: how it goes on if the terms say so.
local LAYOUTS = {
  [0] = { length = 64, terms = 28, unused = { 40, 64 },
          protected = { length = 96, { 40, 8, f.key }, { 48, 32, f.share }, { 80, 16, f.proof } },
          { 4, 4, f.session }, { 8, 8, f.nonce }, { 16, 8, f.token }, { 24, 4, f.token_time } },
  { length = 32, unused = { 28, 32 },
    { 4, 4, f.session }, { 8, 8, f.nonce }, { 16, 8, f.token }, { 24, 4, f.token_time } },
  { length = 64, terms = 36, unused = { 48, 64 },
    protected = { length = 96, { 48, 32, f.share }, { 80, 16, f.proof } },
    { 4, 4, f.session }, { 8, 8, f.nonce }, { 16, 8, f.cookie }, { 24, 8, f.server_nonce },
    { 32, 4, f.server_session } },
  { length = 20, unused = { 18, 20 }, reason = 16,
    { 4, 4, f.session }, { 8, 8, f.nonce }, { 16, 2, f.reason } },
  [5] = { length = 16, unused = { 16, 16 }, { 4, 4, f.session }, { 8, 8, f.cookie } },
}

local function prefix_verdict(tvb, length)
  if length < PREFIX_LENGTH then return "truncated" end
  if tvb(0, 1):uint() ~= MAGIC then return "not_ours" end
  if tvb(1, 1):bitfield(0, 4) ~= VERSION then return "version" end
  return TYPES[tvb(1, 1):bitfield(4, 4)] and "ok" or "type"
end

-- The protected part of a layout, if the packet has one.
local function protected_part(tvb, length, layout)
  return layout.protected and length > layout.terms + 2 and bit_set(tvb(layout.terms + 2, 1):uint(), 4) and layout.protected
end

local function plain_verdict(tvb, length, layout)
  if length < layout.length then return "truncated" end
  if not zero(tvb, 2, 4) then return "malformed" end
  if layout.terms and (tvb(layout.terms + 2, 1):uint() > 31 or not zero(tvb, layout.terms + 3, layout.terms + 4)) then
    return "malformed"
  end
  local protected = protected_part(tvb, length, layout)
  if protected and length < protected.length then return "truncated" end
  if length ~= (protected or layout).length then return "malformed" end
  if not protected and not zero(tvb, layout.unused[1], layout.unused[2]) then return "malformed" end
  if layout.reason and not REASONS[tvb(layout.reason, 2):uint()] then return "malformed" end
  return "ok"
end

-- A session's packet: its parts by length, as far as they may be believed, and whether its lengths add up.
local function session_header(tvb, length)
  if length < HEADER_LENGTH then return "truncated" end
  local flags, words = tvb(2, 1):uint(), tvb(3, 1):uint()
  local h = {
    words = words, ack = bit_set(flags, 1), fragment = bit_set(flags, 2), prompt = bit_set(flags, 4),
    ping = bit_set(flags, 8), close = bit_set(flags, 16), protected = bit_set(flags, 32),
    bundle = bit_set(flags, 64), followed = bit_set(flags, 128),
    payload = tvb(26, 2):uint(), number = tvb(16, 8):uint64(), distance = tvb(24, 2):uint(),
  }
  h.path = h.bundle and not h.fragment
  local alone = h.payload == PATH_CHECK_LENGTH and (flags == 64 or flags == 96)
  if (h.followed and h.protected) or (h.path and not alone) or words > MOST_ACK_WORDS or (words ~= 0 and not h.ack) or (h.payload ~= 0 and not h.fragment and not h.ping and not h.path) or
     UInt64(h.distance) > h.number then
    return "malformed"
  end
  h.fragment_at = HEADER_LENGTH + (h.ack and ACK_LENGTH + 8 * words or 0)
  h.payload_at = h.fragment_at + (h.fragment and FRAGMENT_LENGTH or 0)
  h.length = h.payload_at + h.payload + (h.protected and TAG_LENGTH or 0)
  if length < h.length + (h.followed and HEADER_LENGTH or 0) then return "truncated" end
  if length > h.length and not h.followed then return "malformed" end
  return "ok", h
end

local function valid_head(kind, head, total)
  return head == 0 or (kind <= 3 and head >= TIME_LEFT and head <= total and head <= TIME_LEFT + MOST_METADATA)
end

local function is_fragment(tvb, at, payload)
  local offset, total, size = tvb(at + 8, 4):uint(), tvb(at + 12, 4):uint(), tvb(at + 18, 2):uint()
  local kind, has_head = tvb(at, 1):bitfield(4, 4), bit_set(tvb(at, 1):uint(), 64)
  local prefix = has_head and HEAD_PREFIX or 0
  local message_only = bit_set(tvb(at, 1):uint(), 32) or bit_set(tvb(at, 1):uint(), 16)
  if message_only and kind > 3 then return false end
  if not KINDS[kind] or payload < prefix or offset + payload - prefix > total then return false end
  if has_head then return kind <= 3 end
  return payload ~= total or valid_head(kind, size, total)
end

-- The fragments of a packet, { at, payload } each, up to the first that is malformed, and whether there is none. Of a
-- bundle each is a whole message; where it is encrypted only the first one's header can be read. What checks the path has
-- none, and is malformed if it is of no known kind.
local function fragments_of(tvb, h)
  if h.path then
    return {}, h.protected or (PATH_KINDS[tvb(h.payload_at, 1):uint()] ~= nil and zero(tvb, h.payload_at + 1, h.payload_at + 4))
  end
  if not h.fragment then return {}, true end
  if not h.bundle then
    local good = is_fragment(tvb, h.fragment_at, h.payload)
    return good and { { at = h.fragment_at, payload = h.payload } } or {}, good
  end
  local found, at, left = {}, h.fragment_at, FRAGMENT_LENGTH + h.payload
  while left > 0 do
    local total = left >= FRAGMENT_LENGTH and tvb(at + 12, 4):uint()
    if not total or total > left - FRAGMENT_LENGTH or not is_fragment(tvb, at, total) or bit_set(tvb(at, 1):uint(), 64) then return found, false end
    found[#found + 1] = { at = at, payload = total }
    if h.protected then break end
    at, left = at + FRAGMENT_LENGTH + total, left - FRAGMENT_LENGTH - total
  end
  return found, true
end

-- The verdict, as parse() of the program has it of one packet after the other, and those of sessions whose lengths add
-- up: { tvb, header } each.
local function verdict_of(tvb)
  local length = tvb:reported_len()
  local verdict = prefix_verdict(tvb, length)
  if verdict ~= "ok" then return verdict, {} end
  local type = tvb(1, 1):bitfield(4, 4)
  if type ~= SESSION then return plain_verdict(tvb, length, LAYOUTS[type]), {} end
  local packets = {}
  while true do
    local left = tvb:reported_len()
    local answer, header = "malformed", nil
    if prefix_verdict(tvb, left) == "ok" and tvb(1, 1):bitfield(4, 4) == SESSION then
      answer, header = session_header(tvb, left)
    end
    if verdict == "ok" then verdict = answer end
    if not header then return verdict, packets, left end
    if verdict == "ok" and not select(2, fragments_of(tvb, header)) then verdict = "malformed" end
    packets[#packets + 1] = { tvb = tvb, header = header }
    if not header.followed then return verdict, packets, 0 end
    tvb = tvb(header.length):tvb()
  end
end

local function add_plain(tvb, tree, layout)
  for _, field in ipairs(layout) do tree:add(field[3], tvb(field[1], field[2])) end
  if layout.terms then
    local terms = tree:add(tvb(layout.terms, 12), "Terms")
    terms:add(f.datagram, tvb(layout.terms, 2))
    for _, flag in ipairs({ f.go_back_n, f.ordered, f.is_protected, f.grants, f.bundles }) do terms:add(flag, tvb(layout.terms + 2, 1)) end
    terms:add(f.room, tvb(layout.terms + 4, 4))
    terms:add(f.max_ack_delay, tvb(layout.terms + 8, 4))
  end
  local protected = protected_part(tvb, tvb:reported_len(), layout)
  if protected then
    if tvb:reported_len() < protected.length then return end
    for _, field in ipairs(protected) do tree:add(field[3], tvb(field[1], field[2])) end
    return
  end
  local unused = layout.unused[2] - layout.unused[1]
  if unused > 0 then tree:add(f.unused, tvb(layout.unused[1], unused)) end
end

local function add_ack(tvb, tree, h)
  local at = HEADER_LENGTH
  local ack = tree:add(tvb(at, h.fragment_at - at), "Acknowledgement")
  ack:add(f.cumulative, tvb(at, 4))
  ack:add(f.delay, tvb(at + 4, 4))
  ack:add(f.marked, tvb(at + 8, 4))
  ack:add(f.room, tvb(at + 12, 4))
  local first = tvb(at, 4):uint()
  first = first - first % 64
  for word = 0, h.words - 1 do
    local low = (first + 64 * word) % 2 ^ 32
    local bytes = tvb(at + ACK_LENGTH + 8 * word, 8)
    ack:add(f.word, bytes):append_text(string.format(" of #%.0f (the lowest bit) and the 63 that follow", low))
  end
  return string.format(" ack<%.0f words %d room %.0f", tvb(at, 4):uint(), h.words, tvb(at + 12, 4):uint())
end

local function add_fragment(tvb, tree, at, payload)
  local kind, has_head = tvb(at, 1):bitfield(4, 4), bit_set(tvb(at, 1):uint(), 64)
  local total = tvb(at + 12, 4):uint()
  local fragment = tree:add(tvb(at, FRAGMENT_LENGTH), "Fragment")
  fragment:add(f.more, tvb(at, 1))
  fragment:add(f.head_follows, tvb(at, 1))
  fragment:add(f.stream, tvb(at, 1))
  fragment:add(f.high, tvb(at, 1))
  fragment:add(f.kind, tvb(at, 1))
  fragment:add(f.slot, tvb(at + 1, 1))
  local code = fragment:add(f.code, tvb(at + 2, 2))
  local refusal = KINDS[kind] == "refuse" and REFUSALS[tvb(at + 2, 2):uint()]
  if refusal then code:append_text(" (" .. refusal .. ")") end
  fragment:add(f.sequence, tvb(at + 4, 4))
  fragment:add(f.offset, tvb(at + 8, 4))
  fragment:add(f.total, tvb(at + 12, 4))
  fragment:add(f.order, tvb(at + 16, 2))
  fragment:add(not has_head and payload == total and f.head or f.size, tvb(at + 18, 2))
  if has_head then payload = payload - HEAD_PREFIX end
  local stream = bit_set(tvb(at, 1):uint(), 32) and " of a stream" or ""
  return string.format(" %s%s slot %d.%.0f [%.0f+%d of %.0f]", KINDS[kind] or "?", stream, tvb(at + 1, 1):uint(),
                       tvb(at + 4, 4):uint(), tvb(at + 8, 4):uint(), payload, total)
end

-- Returns the line for the column Info.
local function add_session(tvb, tree, h)
  local flags = tree:add(f.flags, tvb(2, 1))
  for _, flag in ipairs({ f.has_ack, f.has_fragment, f.prompt, f.ping, f.close, f.protected, f.bundle, f.followed }) do
    flags:add(flag, tvb(2, 1))
  end
  tree:add(f.ack_words, tvb(3, 1))
  tree:add(f.session, tvb(4, 4))
  tree:add(f.cookie, tvb(8, 8))
  tree:add(f.number, tvb(16, 8))
  local floor = tostring(h.number - UInt64(h.distance))
  tree:add(f.distance, tvb(24, 2)):append_text(" (#" .. floor .. ")")
  tree:add(f.payload_length, tvb(26, 2))
  local info = string.format("session 0x%x #%s floor #%s", tvb(4, 4):uint(), tostring(h.number), floor)
  if h.ack then info = info .. add_ack(tvb, tree, h) end
  local found, good = fragments_of(tvb, h)
  for _, fragment in ipairs(found) do
    info = info .. add_fragment(tvb, tree, fragment.at, fragment.payload)
    local length = h.protected and h.payload or fragment.payload
    if length > 0 then
      local from = fragment.at + FRAGMENT_LENGTH
      local payload = tree:add(f.payload, tvb(from, length))
      local prefix = bit_set(tvb(fragment.at, 1):uint(), 64) and HEAD_PREFIX or 0
      local whole = prefix == 0 and fragment.payload == tvb(fragment.at + 12, 4):uint()
      local has_head = prefix ~= 0 or (whole and tvb(fragment.at + 18, 2):uint() > 0)
      if has_head and not h.protected then
        if prefix ~= 0 then payload:add(f.head, tvb(from, prefix)) end
        if tvb(fragment.at + 8, 4):uint() == 0 and length >= prefix + TIME_LEFT then
          payload:add(f.time_left, tvb(from + prefix, TIME_LEFT))
        end
      end
      local head = has_head and (prefix ~= 0 and length >= prefix and tvb(from, prefix):uint() or tvb(fragment.at + 18, 2):uint()) or 0
      local begins = from + prefix + head
      if bit_set(tvb(fragment.at, 1):uint(), 32) and not h.protected and tvb(fragment.at + 8, 4):uint() == 0 and
         length >= prefix + head + STREAM_HEAD then
        payload:add(f.stream_kind, tvb(begins, 1))
        payload:add(f.stream_to, tvb(begins + 4, 4))
        payload:add(f.stream_from, tvb(begins + 8, 4))
        payload:add(f.stream_number, tvb(begins + 12, 4))
        payload:add(f.stream_credit, tvb(begins + 16, 4))
      end
      if h.protected then payload:append_text(" (encrypted)") end
    end
  end
  if not good then
    local last = found[#found]
    local from = last and last.at + FRAGMENT_LENGTH + last.payload or h.fragment_at
    tree:add(f.rest, tvb(from, h.payload_at + h.payload - from))
  end
  if h.path and good then
    if h.protected then
      tree:add(f.payload, tvb(h.payload_at, h.payload)):append_text(" (encrypted)")
    else
      tree:add(f.path_kind, tvb(h.payload_at, 1))
      tree:add(f.unused, tvb(h.payload_at + 1, 3))
      tree:add(f.path_time, tvb(h.payload_at + 4, 4))
      tree:add(f.path_token, tvb(h.payload_at + 8, 8))
    end
  end
  if h.path then info = info .. " path" .. (good and not h.protected and " " .. PATH_KINDS[tvb(h.payload_at, 1):uint()] or "") end
  local pads = not h.fragment and not h.path and h.payload > 0
  if pads then tree:add(f.padding, tvb(h.payload_at, h.payload)) end
  if h.protected then tree:add(f.tag, tvb(h.payload_at + h.payload, TAG_LENGTH)) end
  for _, flag in ipairs({ "prompt", "ping", "close", "protected" }) do
    if h[flag] then info = info .. " " .. flag end
    if flag == "ping" and pads then info = info .. string.format(" padding %d", h.payload) end
  end
  return info
end

local MEANINGS = {
  truncated = "ends before what it says it holds",
  not_ours = "does not begin as our packets do",
  version = "of a version that is not known here",
  type = "of an unknown type",
  malformed = "lengths or fields contradict each other, or unused bytes are not zero",
}

function warpline.dissector(tvb, pinfo, root)
  local length = tvb:reported_len()
  if length == 0 then return 0 end
  local verdict, packets, left = verdict_of(tvb)
  pinfo.cols.protocol = "Warpline"
  local tree = root:add(warpline, tvb())
  tree:add(f.parse, verdict):set_generated()
  local ours = verdict ~= "not_ours" and verdict ~= "version" and verdict ~= "type" and length >= PREFIX_LENGTH
  local info = string.format("%d bytes, not of a session", length)
  if length >= PREFIX_LENGTH then
    tree:add(f.magic, tvb(0, 1))
    tree:add(f.version, tvb(1, 1))
    tree:add(f.type, tvb(1, 1))
  end
  if ours then
    local type = tvb(1, 1):bitfield(4, 4)
    if type == SESSION then
      local parts = {}
      for i, packet in ipairs(packets) do
        local of = i == 1 and tree or tree:add(packet.tvb(0, packet.header.length), "Packet of another session")
        parts[i] = add_session(packet.tvb, of, packet.header)
      end
      if left > 0 then parts[#parts + 1] = string.format("malformed, %d bytes", left) end
      info = table.concat(parts, " + ")
    else
      info = string.format("%s, %d bytes", TYPES[type], length)
      if length >= LAYOUTS[type].length then add_plain(tvb, tree, LAYOUTS[type]) end
    end
  end
  if verdict ~= "ok" then
    if #packets == 0 and length > PREFIX_LENGTH then tree:add(f.rest, tvb(PREFIX_LENGTH)) end
    tree:add_proto_expert_info(ours and malformed or foreign, MEANINGS[verdict])
  end
  pinfo.cols.info = info
  return length
end

-- One well-formed packet makes the conversation ours, damaged packets of it too.
local function recognise(tvb, pinfo, root)
  if tvb:captured_len() < tvb:reported_len() or verdict_of(tvb) ~= "ok" then return false end
  pinfo.conversation = warpline
  warpline.dissector(tvb, pinfo, root)
  return true
end

warpline:register_heuristic("udp", recognise)
DissectorTable.get("udp.port"):add_for_decode_as(warpline)

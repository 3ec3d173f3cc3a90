#include "transport/net/lane/flag_lines.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "device/packet_ll.h"
#include "device/packet_ll128.h"

namespace tutti::net {
namespace {

namespace ll = device::ll;
namespace ll128 = device::ll128;

// Every access of a slot is one of 8 bytes: kernels access the same words at the same time.
std::uint64_t load(std::uint64_t* word, std::memory_order order) {
  return std::atomic_ref(*word).load(order);
}
void store(std::uint64_t* word, std::uint64_t value, std::memory_order order) {
  std::atomic_ref(*word).store(value, order);
}

std::uint64_t* wordsAt(std::byte* bytes) {
  return reinterpret_cast<std::uint64_t*>(bytes);
}

/// Line i of a slot of LL128, and where its data lie in the content: 112 bytes in one place, the last 8 in another.
struct Line128 {
  std::uint64_t* words;
  std::size_t full;
  std::size_t rest;
};
constexpr std::size_t kFullWords = ll128::kLineFull / sizeof(std::uint64_t);
constexpr std::size_t kRestWord = kFullWords;
constexpr std::size_t kFlagWord = kFullWords + 1;

Line128 line128(const LineSlot& slot, std::uint32_t i) {
  const std::uint32_t lane = i % ll128::kLinesPerPacket * ll128::kLanesPerLine;
  const std::size_t packet = i / ll128::kLinesPerPacket;
  const std::size_t content = packet * ll128::kPacketPayload;
  return {wordsAt(slot.data + std::size_t{i} * ll128::kLineBytes), content + ll128::offsetOf(lane),
          content + ll128::offsetOf(lane + ll128::kLanesPerLine - 1)};
}

std::uint32_t takeLL(const LineSlot& slot, std::uint32_t lines, std::uint32_t taken, std::byte* into) {
  const std::uint32_t flag = ll::flagOf(slot.step);
  for (; taken < lines; ++taken) {
    std::uint64_t* const words = wordsAt(slot.data + taken * ll::kLineBytes);
    const std::uint64_t first = load(words, std::memory_order_relaxed);
    const std::uint64_t second = load(words + 1, std::memory_order_relaxed);
    if (ll::flagIn(first) != flag || ll::flagIn(second) != flag) break;
    const std::uint64_t data = ll::dataIn(first, second);
    std::memcpy(into + taken * ll::kLinePayload, &data, sizeof(data));
  }
  return taken;
}

std::uint32_t takeLL128(const LineSlot& slot, std::uint32_t lines, std::uint32_t taken, std::byte* into) {
  const std::uint64_t flag = ll128::flagOf(slot.step);
  for (; taken < lines; ++taken) {
    const Line128 line = line128(slot, taken);
    if (load(line.words + kFlagWord, std::memory_order_acquire) != flag) break;
    std::uint64_t data[kFullWords];
    for (std::size_t w = 0; w < kFullWords; ++w) data[w] = load(line.words + w, std::memory_order_relaxed);
    const std::uint64_t rest = load(line.words + kRestWord, std::memory_order_relaxed);
    std::memcpy(into + line.full, data, sizeof(data));
    std::memcpy(into + line.rest, &rest, sizeof(rest));
  }
  return taken;
}

void putLL(const LineSlot& slot, std::uint32_t lines, const std::byte* content) {
  const std::uint32_t flag = ll::flagOf(slot.step);
  for (std::uint32_t i = 0; i < lines; ++i) {
    std::uint64_t data = 0;
    std::memcpy(&data, content + i * ll::kLinePayload, sizeof(data));
    std::uint64_t* const words = wordsAt(slot.data + i * ll::kLineBytes);
    store(words, ll::wordOf(static_cast<std::uint32_t>(data), flag), std::memory_order_relaxed);
    store(words + 1, ll::wordOf(static_cast<std::uint32_t>(data >> 32), flag), std::memory_order_relaxed);
  }
}

/// What a sender in the same machine does in the first steps of an epoch (packet_ll.h).
void cleanLL(const LineSlot& slot, std::uint32_t lines) {
  const std::uint64_t nothing = ll::wordOf(0, ll::flagOf(slot.step));
  for (std::uint32_t i = lines; i < ll::linesOf(slot.bytes); ++i) {
    std::uint64_t* const words = wordsAt(slot.data + i * ll::kLineBytes);
    store(words, nothing, std::memory_order_relaxed);
    store(words + 1, nothing, std::memory_order_relaxed);
  }
}

void putLL128(const LineSlot& slot, std::uint32_t lines, const std::byte* content) {
  for (std::uint32_t i = 0; i < lines; ++i) {
    const Line128 line = line128(slot, i);
    std::uint64_t data[kFullWords];
    std::uint64_t rest = 0;
    std::memcpy(data, content + line.full, sizeof(data));
    std::memcpy(&rest, content + line.rest, sizeof(rest));
    for (std::size_t w = 0; w < kFullWords; ++w) store(line.words + w, data[w], std::memory_order_relaxed);
    store(line.words + kRestWord, rest, std::memory_order_relaxed);
    store(line.words + kFlagWord, ll128::flagOf(slot.step), std::memory_order_release);
  }
}

/// Content that the lines of `bytes` have room for.
std::size_t unitsBytes(device::Protocol protocol, std::uint32_t bytes) {
  const std::size_t unit = protocol == device::Protocol::LL ? ll::kLinePayload : ll128::kPacketPayload;
  return std::max<std::size_t>(1, (bytes + unit - 1) / unit) * unit;
}

}  // namespace

std::uint32_t contentRoom(device::Protocol protocol, std::uint32_t slotBytes) {
  return protocol == device::Protocol::LL ? ll::payloadOf(slotBytes) : ll128::payloadOf(slotBytes);
}

std::uint32_t linesFor(device::Protocol protocol, std::uint32_t bytes) {
  if (protocol == device::Protocol::LL)
    return static_cast<std::uint32_t>(unitsBytes(protocol, bytes) / ll::kLinePayload);
  const std::uint32_t packets = bytes / ll128::kPacketPayload;
  const std::uint32_t rest = bytes % ll128::kPacketPayload;
  return packets * ll128::kLinesPerPacket + (rest > 0 || packets == 0 ? ll128::linesFor(rest) : 0);
}

std::uint32_t takeLines(device::Protocol protocol, const LineSlot& slot, std::uint32_t bytes, std::uint32_t taken,
                        std::byte* into) {
  const std::uint32_t lines = linesFor(protocol, bytes);
  return protocol == device::Protocol::LL ? takeLL(slot, lines, taken, into) : takeLL128(slot, lines, taken, into);
}

void putLines(device::Protocol protocol, const LineSlot& slot, std::uint32_t bytes, std::byte* content) {
  const std::uint32_t lines = linesFor(protocol, bytes);
  std::memset(content + bytes, 0, unitsBytes(protocol, bytes) - bytes);
  if (protocol == device::Protocol::LL) {
    putLL(slot, lines, content);
    if (ll::cleansSlot(slot.step)) cleanLL(slot, lines);
  } else {
    putLL128(slot, lines, content);
  }
}

}  // namespace tutti::net

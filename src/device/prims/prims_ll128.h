// LL128 on the wire: packets of four 128-byte lines. A warp moves a packet with one access per thread; a lone thread
// goes through its lines.
#pragma once

#include "device/packet_ll128.h"
#include "device/prims/prims_flagged.h"

namespace tutti::device {

struct WireLL128 {
  static constexpr Protocol kProtocol = Protocol::LL128;
  static constexpr std::uint64_t kUnitPayload = ll128::kPacketPayload;
  static constexpr unsigned kTeam = simt::kWarpSize;
  static constexpr int kInFlight = 2;  // more would not fit into registers
  using Cell = simt::Pack16;

  TUTTI_DEVICE static std::uint32_t payloadOf(std::uint32_t slotBytes) { return ll128::payloadOf(slotBytes); }
  TUTTI_DEVICE static std::uint64_t cellOffset(unsigned lane) { return ll128::offsetOf(lane); }
  TUTTI_DEVICE static std::uint64_t cellBytes(unsigned lane) { return ll128::bytesOf(lane); }

  /// The threads of a warp act together, so they must also wait together.
  template <class Fifo>
  TUTTI_DEVICE static bool wait(Fifo& fifo, simt::Thread t, simt::Group group, const std::uint32_t* abortWord) {
    if (simt::kLoneThreads && group.size == 1) return fifo.wait(t, abortWord);
    return fifo.waitWarp(t, abortWord);
  }

  template <int kN>
  TUTTI_DEVICE static bool await(const Poll& poll, std::uint64_t unit, Cell (&cells)[kN]) {
    const Spot& spot = poll.spot;
    const unsigned lane = spot.group.rank % kTeam;
    const std::uint64_t flag = ll128::flagOf(spot.step);
    return simt::spinWarpUntil(spot.thread, poll.abortWord, [&] {
      TUTTI_UNROLL
      for (int u = 0; u < kN; ++u) {
        const std::uint64_t at = unit + u * poll.stride;
        cells[u] = spot.thread.loadLine16(spot.group, carries(at, poll.bytes, lane) ? partOf(spot, at, lane) : nullptr);
      }
      bool missing = false;
      TUTTI_UNROLL
      for (int u = 0; u < kN; ++u) {
        missing = missing || (ll128::holdsFlag(lane) && cells[u].word[1] != flag &&
                              carries(unit + u * poll.stride, poll.bytes, lane));
      }
      return !spot.thread.any(missing);
    });
  }

  TUTTI_DEVICE static void put(const Spot& spot, std::uint64_t unit, std::uint64_t bytes, Cell cell) {
    const unsigned lane = spot.group.rank % kTeam;
    if (ll128::holdsFlag(lane)) cell.word[1] = ll128::flagOf(spot.step);
    spot.thread.storeLine16(spot.group, carries(unit, bytes, lane) ? partOf(spot, unit, lane) : nullptr, cell);
  }

  TUTTI_DEVICE static bool unpack(const Spot& spot, const std::uint32_t* abortWord, std::uint64_t unit,
                                  std::uint64_t bytes, std::byte* to) {
    for (std::uint64_t begin = 0; begin == 0 || begin < bytes; begin += kUnitPayload, ++unit) {
      const unsigned lanes = ll128::linesFor(bytes - begin) * ll128::kLanesPerLine;
      for (unsigned first = 0; first < lanes; first += ll128::kLanesPerLine) {
        if (!takeLine(spot, abortWord, partOf(spot, unit, first), first, to + begin)) return false;
      }
    }
    return true;
  }

  TUTTI_DEVICE static void pack(const Spot& spot, std::uint64_t unit, std::uint64_t bytes, const void* from) {
    const auto* source = static_cast<const std::byte*>(from);
    for (; bytes >= kUnitPayload; bytes -= kUnitPayload, source += kUnitPayload) {
      putPacket(spot, unit++, ll128::kLinesPerPacket, source);
    }
    if (bytes == 0 && source != from) return;
    alignas(16) std::byte last[kUnitPayload] = {};
    if (bytes > 0) __builtin_memcpy(last, source, bytes);
    putPacket(spot, unit, ll128::linesFor(bytes), last);
  }

  /// 64-bit flags do not come round.
  TUTTI_DEVICE static bool cleansSlot(std::uint64_t) { return false; }
  TUTTI_DEVICE static void clean(const Spot&, simt::Group, std::uint64_t) {}

 private:
  TUTTI_DEVICE static simt::Pack16* partOf(const Spot& spot, std::uint64_t unit, unsigned lane) {
    return reinterpret_cast<simt::Pack16*>(spot.slot + unit * ll128::kPacketBytes) + lane;
  }

  /// Whether the lane's line is one of those that packet `unit` of a step of `bytes` needs.
  TUTTI_DEVICE static bool carries(std::uint64_t unit, std::uint64_t bytes, unsigned lane) {
    const std::uint64_t begin = unit * kUnitPayload;
    return lane / ll128::kLanesPerLine < ll128::linesFor(begin < bytes ? bytes - begin : 0);
  }

  /// A lone thread waits for the line that starts at lane `first` and takes out its data.
  TUTTI_DEVICE static bool takeLine(const Spot& spot, const std::uint32_t* abortWord, const simt::Pack16* line,
                                    unsigned first, std::byte* payload) {
    constexpr unsigned kLast = ll128::kLanesPerLine - 1;
    simt::Pack16 part{};
    const bool alive = simt::spinUntil(spot.thread, abortWord, [&] {
      part = spot.thread.loadLine16({0, 1}, line + kLast);
      return part.word[1] == ll128::flagOf(spot.step);
    });
    if (!alive) return false;
    __builtin_memcpy(payload + ll128::offsetOf(first + kLast), &part.word[0], 8);
    TUTTI_UNROLL
    for (unsigned lane = 0; lane < kLast; ++lane) {
      part = spot.thread.loadLine16({0, 1}, line + lane);
      __builtin_memcpy(payload + ll128::offsetOf(first + lane), &part, sizeof(part));
    }
    return true;
  }

  TUTTI_DEVICE static void putPacket(const Spot& spot, std::uint64_t unit, std::uint32_t lines,
                                     const std::byte* payload) {
    for (unsigned lane = 0; lane < lines * ll128::kLanesPerLine; ++lane) {
      simt::Pack16 part;
      __builtin_memcpy(&part, payload + ll128::offsetOf(lane), ll128::bytesOf(lane));
      if (ll128::holdsFlag(lane)) part.word[1] = ll128::flagOf(spot.step);
      spot.thread.storeLine16({0, 1}, partOf(spot, unit, lane), part);
    }
  }
};

template <class T, class Op, class FanOf = Fan<1, 1>>
using PrimsLL128 = PrimsFlagged<WireLL128, T, Op, FanOf>;

}  // namespace tutti::device

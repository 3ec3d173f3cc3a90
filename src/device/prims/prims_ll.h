// LL on the wire: lines of 8 bytes of data and two flags, written and read by single threads.
#pragma once

#include "device/packet_ll.h"
#include "device/prims/prims_flagged.h"

namespace tutti::device {

struct WireLL {
  static constexpr Protocol kProtocol = Protocol::LL;
  static constexpr std::uint64_t kUnitPayload = ll::kLinePayload;
  static constexpr unsigned kTeam = 1;
  static constexpr int kInFlight = 4;
  using Cell = std::uint64_t;

  TUTTI_DEVICE static std::uint32_t payloadOf(std::uint32_t slotBytes) { return ll::payloadOf(slotBytes); }
  TUTTI_DEVICE static std::uint64_t cellOffset(unsigned) { return 0; }
  TUTTI_DEVICE static std::uint64_t cellBytes(unsigned) { return sizeof(Cell); }

  template <class Fifo>
  TUTTI_DEVICE static bool wait(Fifo& fifo, simt::Thread t, simt::Group, const std::uint32_t* abortWord) {
    return fifo.wait(t, abortWord);
  }

  template <int kN>
  TUTTI_DEVICE static bool await(const Poll& poll, std::uint64_t unit, Cell (&cells)[kN]) {
    const simt::Pack16* lines = linesOf(poll.spot) + unit;
    const std::uint32_t flag = ll::flagOf(poll.spot.step);
    simt::Pack16 line[kN];
    const bool alive = simt::spinUntil(poll.spot.thread, poll.abortWord, [&] {
      bool arrived = true;
      TUTTI_UNROLL
      for (int u = 0; u < kN; ++u) line[u] = poll.spot.thread.loadVolatile(lines + u * poll.stride);
      TUTTI_UNROLL
      for (int u = 0; u < kN; ++u) {
        arrived = arrived && ll::flagIn(line[u].word[0]) == flag && ll::flagIn(line[u].word[1]) == flag;
      }
      return arrived;
    });
    TUTTI_UNROLL
    for (int u = 0; u < kN; ++u) cells[u] = ll::dataIn(line[u].word[0], line[u].word[1]);
    return alive;
  }

  TUTTI_DEVICE static void put(const Spot& spot, std::uint64_t unit, std::uint64_t, Cell cell) {
    const std::uint32_t flag = ll::flagOf(spot.step);
    const simt::Pack16 line{
        {ll::wordOf(static_cast<std::uint32_t>(cell), flag), ll::wordOf(static_cast<std::uint32_t>(cell >> 32), flag)}};
    spot.thread.storeVolatile(linesOf(spot) + unit, line);
  }

  TUTTI_DEVICE static bool unpack(const Spot& spot, const std::uint32_t* abortWord, std::uint64_t unit,
                                  std::uint64_t bytes, std::byte* to) {
    const Poll poll{spot, abortWord, 1, bytes};
    std::uint64_t done = 0;
    do {
      Cell cell[1];
      if (!await<1>(poll, unit++, cell)) return false;
      __builtin_memcpy(to + done, cell, sizeof(Cell));  // runs are whole units: there is room
      done += kUnitPayload;
    } while (done < bytes);
    return true;
  }

  TUTTI_DEVICE static void pack(const Spot& spot, std::uint64_t unit, std::uint64_t bytes, const void* from) {
    const auto* source = static_cast<const std::byte*>(from);
    for (; bytes >= kUnitPayload; bytes -= kUnitPayload, source += kUnitPayload) {
      Cell cell;
      __builtin_memcpy(&cell, source, sizeof(Cell));
      put(spot, unit++, 0, cell);
    }
    if (bytes == 0 && source != from) return;
    Cell cell = 0;
    if (bytes > 0) __builtin_memcpy(&cell, source, bytes);
    put(spot, unit, 0, cell);
  }

  TUTTI_DEVICE static bool cleansSlot(std::uint64_t step) { return ll::cleansSlot(step); }
  TUTTI_DEVICE static void clean(const Spot& spot, simt::Group group, std::uint64_t units) {
    for (std::uint64_t unit = units + group.rank; unit < ll::linesOf(spot.slotBytes); unit += group.size) {
      put(spot, unit, 0, 0);
    }
  }

 private:
  TUTTI_DEVICE static simt::Pack16* linesOf(const Spot& spot) { return reinterpret_cast<simt::Pack16*>(spot.slot); }
};

template <class T, class Op, class FanOf = Fan<1, 1>>
using PrimsLL = PrimsFlagged<WireLL, T, Op, FanOf>;

}  // namespace tutti::device

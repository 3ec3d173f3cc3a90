// Cells of a wire (prims_flagged.h) in the user's memory.
#pragma once

#include "device/number/pack.h"
#include "device/partition.h"
#include "device/prims/prims_common.h"

namespace tutti::device {

/// A step moves `bytes` from `in` or to `out`; a thread's cell of the unit whose payload begins at `unitOffset` is
/// meant. kWhole: it is full and aligned.
template <class Wire, class T>
struct CellsOf {
  using Cell = Pack<T, sizeof(typename Wire::Cell)>;

  /// Elements of a cell that the step uses.
  TUTTI_DEVICE static unsigned usedOf(std::uint64_t bytes, std::uint64_t offset, unsigned lane) {
    return offset >= bytes ? 0 : static_cast<unsigned>(smaller(bytes - offset, Wire::cellBytes(lane)) / sizeof(T));
  }

  template <bool kWhole>
  TUTTI_DEVICE static Cell load(const T* in, std::uint64_t bytes, std::uint64_t unitOffset, unsigned lane) {
    const std::uint64_t offset = unitOffset + Wire::cellOffset(lane);
    if constexpr (kWhole) {
      if (Wire::cellBytes(lane) == sizeof(Cell)) return simt::loadData<Cell>(in + offset / sizeof(T), 0);
      typename Wire::Cell bits{};  // half a cell
      const auto half = simt::loadData<std::uint64_t>(in + offset / sizeof(T), 0);
      __builtin_memcpy(&bits, &half, sizeof(half));
      return fromBits<Cell>(bits);
    }
    return loadElements<Cell>(in + offset / sizeof(T), usedOf(bytes, offset, lane));
  }

  template <bool kWhole>
  TUTTI_DEVICE static void store(T* out, std::uint64_t bytes, std::uint64_t unitOffset, unsigned lane,
                                 const Cell& value) {
    const std::uint64_t offset = unitOffset + Wire::cellOffset(lane);
    if constexpr (kWhole) {
      if (Wire::cellBytes(lane) == sizeof(Cell)) return simt::storeData(out + offset / sizeof(T), 0, value);
      std::uint64_t half;
      __builtin_memcpy(&half, &value, sizeof(half));
      return simt::storeData(out + offset / sizeof(T), 0, half);
    }
    storeElements(out + offset / sizeof(T), usedOf(bytes, offset, lane), value);
  }
};

}  // namespace tutti::device

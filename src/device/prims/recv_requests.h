// How a receiver asks for what it is going to receive, where connections share slots: before it waits, in the order in
// which it will receive. Whoever fills the places knows of nothing else.
#pragma once

#include "device/prims/fifo_view.h"
#include "device/prims/prims_common.h"

namespace tutti::device {

/// The connection of a message may share its slots with others.
struct MessageFan : Fan<1, 1> {
  static constexpr bool kShares = true;
};

/// Where the content of a step is to go: a slot, or the user's memory.
struct AskedFor {
  std::uint32_t slot;
  std::uint64_t into;  ///< an address, or 0
};

/// The place for `bytes` that belong to `data` (null: nowhere yet), if there is one.
TUTTI_DEVICE bool findPlace(const RecvConn& conn, RecvRequests& at, std::uint32_t taken, const void* data,
                            std::uint32_t bytes, AskedFor& place) {
  if (data != nullptr && mayAskInto(conn, data, bytes)) {
    place = {0, reinterpret_cast<std::uintptr_t>(data)};
    return true;
  }
  if (at.slots - taken >= conn.shared.count) return false;
  place = {at.slots++, 0};
  return true;
}

/// Whether there are words to speak of `step` by, of a connection whose step `next` is received next. In place there is
/// room for any number of steps. The words of a step last for the one after it: threads of a crew may be as far apart.
TUTTI_DEVICE bool hasWords(std::uint64_t step, std::uint64_t next) {
  return step - next < kMostSharedSlots - 1;
}

/// Asks for step `step` of the connection, of so many bytes. `placeWord`: askedPlace(). The place is told before the
/// size, and the size after everybody has read what was in that place.
TUTTI_DEVICE void ask(simt::Thread t, const RecvConn& conn, std::uint64_t step, const AskedFor& place,
                      std::uint64_t placeWord, std::uint32_t bytes) {
  if constexpr (simt::kPulls) t.storeRelaxedSys(conn.words->into.of(step), place.into);
  t.storeRelaxedSys(conn.words->place.of(step), placeWord);
  t.storeReleaseSys(conn.words->expected.of(step), sizeWord(step, bytes));
}

}  // namespace tutti::device

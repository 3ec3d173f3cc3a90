// Where things lie in the memory that a sender's kernels share with their relay.
#include "transport/net/pxn/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "transport/net/send/flagged.h"

namespace tutti::test {
namespace {

using device::SlotBytes;
using net::pxn::Layout;

struct Place {
  const char* what;
  std::size_t begin;
  std::size_t bytes;
};

std::vector<Place> placesIn(const net::pxn::Layout& layout, const SlotBytes& slotBytes, bool simpleElsewhere) {
  constexpr std::size_t kCounters = device::kCountersBytes;
  std::vector<Place> places{{"status", 0, sizeof(net::pxn::PxnStatusPage)},
                            {"tail", layout.tail, kCounters},
                            {"head", layout.head, kCounters},
                            {"words", layout.words, sizeof(device::SendWords)},
                            {"probes", layout.probes, 2 * net::pxn::kProbeRoom},
                            {"messages", layout.messages, net::senderMessageBytes(slotBytes)}};
  for (std::size_t p = 0; p < slotBytes.size(); ++p) {
    const bool elsewhere = p == 2 && simpleElsewhere;
    EXPECT_TRUE(!elsewhere || layout.slots[p] == 0);
    if (slotBytes[p] == 0 || elsewhere) continue;
    places.push_back({"slots", layout.slots[p], std::size_t{slotBytes[p]} * device::kSteps});
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.begin < b.begin; });
  return places;
}

constexpr std::array<SlotBytes, 4> kShapes{{{4096, 2048, 2048}, {0, 0, 1 << 20}, {128, 0, 0}, {0, 3840, 128}}};

TEST(RelayMemory, GivesEverythingAPlaceOfItsOwn) {
  for (std::size_t n = 0; n < 2 * kShapes.size(); ++n) {
    const SlotBytes& slotBytes = kShapes[n / 2];
    const bool elsewhere = n % 2 != 0;
    const net::pxn::Layout layout = net::pxn::layoutOf(slotBytes, elsewhere);
    const std::vector<Place> places = placesIn(layout, slotBytes, elsewhere);
    for (std::size_t i = 1; i < places.size(); ++i) {
      EXPECT_LE(places[i - 1].begin + places[i - 1].bytes, places[i].begin)
          << places[i - 1].what << " and " << places[i].what;
    }
    EXPECT_LE(places.back().begin + places.back().bytes, layout.bytes);
  }
}

TEST(RelayMemory, HasRoomForEveryWordOfAView) {
  const SlotBytes slotBytes = kShapes[0];
  const net::pxn::Layout layout = net::pxn::layoutOf(slotBytes, false);
  std::vector<std::byte> memory(layout.bytes);
  const device::SendConn view = net::pxn::viewOf(layout, slotBytes, memory.data(), nullptr);
  const auto offset = [&](const void* word) {
    return static_cast<std::size_t>(static_cast<const std::byte*>(word) - memory.data());
  };
  EXPECT_EQ(offset(view.words), layout.words);
  EXPECT_LT(offset(view.tailOf(device::Protocol::Simple)), layout.head);
  EXPECT_LT(offset(view.headOf(device::Protocol::Simple)), layout.words);
  EXPECT_LT(offset(view.words->place.of(device::kMostSharedSlots - 1)), layout.probes);
}

}  // namespace
}  // namespace tutti::test

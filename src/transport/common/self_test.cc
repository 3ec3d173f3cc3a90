#include "transport/common/self_test.h"

#include <array>
#include <span>

#include "base/log.h"
#include "gpu/memory.h"
#include "transport/common/ranks.h"

namespace tutti::transport {
namespace {

/// Differs per writer, reader, channel and protocol, so that crossed mappings do not pass; never zero.
std::uint64_t patternOf(const LinkSpec& link, int writer, int reader, std::size_t protocol) {
  const std::uint64_t ranks = static_cast<std::uint64_t>(writer) << 32 | static_cast<std::uint32_t>(reader);
  const auto place = static_cast<std::uint64_t>(link.channel) << 8 | static_cast<std::uint64_t>(link.kind) << 32;
  return ((ranks * 0x9e3779b97f4a7c15ULL ^ place) | 1) + 2 * (protocol + 1);
}

CUdeviceptr counterAt(CUdeviceptr memory, std::size_t protocol) {
  return memory + kCounterOffset + protocol * sizeof(device::Counter);
}

/// Where the slots of one protocol are touched: their first and their last eight bytes.
std::array<CUdeviceptr, 2> slotsAt(CUdeviceptr memory, const SlotBytes& slotBytes, std::size_t protocol) {
  const CUdeviceptr first = memory + receiverLayout(slotBytes).slots[protocol];
  return {first, first + std::size_t{slotBytes[protocol]} * device::kSteps - sizeof(std::uint64_t)};
}

}  // namespace

Status SelfTest::writeWord(CUdeviceptr address, std::uint64_t value) const {
  return gpu::copyToDevice(*device, address, std::as_bytes(std::span(&value, 1)));
}

Status SelfTest::write() const {
  for (std::size_t p = 0; p < link->slotBytes.size(); ++p) {
    if (link->slotBytes[p] == 0) continue;
    const std::uint64_t value = patternOf(*link, link->self.rank, link->peer.rank, p);
    if (direction == device::Direction::Send) {
      for (const CUdeviceptr slot : slotsAt(peer, link->slotBytes, p)) TRY(writeWord(slot, value));
    }
    TRY(writeWord(counterAt(peer, p), value));
  }
  return {};
}

Result<bool> SelfTest::checkAndClear(CUdeviceptr address, std::uint64_t expected, std::size_t protocol,
                                     const char* what) const {
  constexpr std::array<const char*, device::kProtocols> kNames{"LL", "LL128", "Simple"};
  std::uint64_t found = 0;
  TRY(gpu::copyToHost(*device, std::as_writable_bytes(std::span(&found, 1)), address));
  TRY(gpu::zeroDevice(*device, address, sizeof(found)));
  if (found == expected) return true;
  warn(
      "{} self-test of channel {}, {}: the {} {} holds {:#x} instead of the peer's {:#x}. Likely causes: an IOMMU or "
      "PCI access control (ACS) between the devices drops writes, or a handle was mixed up and it wrote elsewhere",
      transport, link->channel, pairText(link->self, link->peer), kNames[protocol], what, found, expected);
  return false;
}

Result<bool> SelfTest::check() const {
  bool good = true;
  for (std::size_t p = 0; p < link->slotBytes.size(); ++p) {
    if (link->slotBytes[p] == 0) continue;
    const std::uint64_t value = patternOf(*link, link->peer.rank, link->self.rank, p);
    if (direction == device::Direction::Recv) {
      for (const CUdeviceptr slot : slotsAt(own, link->slotBytes, p)) {
        ASSIGN(const bool arrived, checkAndClear(slot, value, p, "slot"));
        good = good && arrived;
      }
    }
    ASSIGN(const bool arrived, checkAndClear(counterAt(own, p), value, p, "counter"));
    good = good && arrived;
  }
  return good;
}

}  // namespace tutti::transport

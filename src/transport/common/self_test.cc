#include "transport/common/self_test.h"

#include <array>

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

std::vector<ProbeWord> SelfTest::wordsOf(device::Direction writer, CUdeviceptr memory, int writerRank,
                                         int readerRank) const {
  std::vector<ProbeWord> words;
  for (std::size_t p = 0; p < link->slotBytes.size(); ++p) {
    if (link->slotBytes[p] == 0) continue;
    const std::uint64_t value = patternOf(*link, writerRank, readerRank, p);
    if (writer == device::Direction::Send) {
      for (const CUdeviceptr slot : slotsAt(memory, link->slotBytes, p)) words.push_back({{slot, value}, p, "slot"});
    }
    words.push_back({{counterAt(memory, p), value}, p, "counter"});
  }
  return words;
}

Status SelfTest::write() const {
  std::vector<gpu::DeviceWord> words;
  for (const ProbeWord& probe : wordsOf(direction, peer, link->self.rank, link->peer.rank)) words.push_back(probe.word);
  return gpu::writeWords(*device, words);
}

Result<bool> SelfTest::check() const {
  constexpr std::array<const char*, device::kProtocols> kNames{"LL", "LL128", "Simple"};
  const device::Direction writer =
      direction == device::Direction::Send ? device::Direction::Recv : device::Direction::Send;
  const std::vector<ProbeWord> expected = wordsOf(writer, own, link->peer.rank, link->self.rank);
  std::vector<gpu::DeviceWord> found;
  found.reserve(expected.size());
  for (const ProbeWord& probe : expected) found.push_back({probe.word.address, 0});
  TRY(gpu::takeWords(*device, found));
  bool good = true;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const ProbeWord& probe = expected[i];
    if (found[i].value == probe.word.value) continue;
    good = false;
    warn(
        "{} self-test of channel {}, {}: the {} {} holds {:#x} instead of the peer's {:#x}. Likely causes: an IOMMU or "
        "PCI access control (ACS) between the devices drops writes, or a handle was mixed up and it wrote elsewhere",
        transport, link->channel, pairText(link->self, link->peer), kNames[probe.protocol], probe.what, found[i].value,
        probe.word.value);
  }
  return good;
}

}  // namespace tutti::transport

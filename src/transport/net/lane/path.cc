#include "transport/net/lane/path.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/log.h"
#include "device/policy.h"
#include "transport/common/ranks.h"
#include "transport/net/lane/flag_lines.h"
#include "transport/net/lane/peer_farewells.h"

namespace tutti::net {

namespace {

/// Bytes of the longest message of slots of this size.
std::size_t longestMessage(device::Protocol protocol, std::uint32_t slotBytes) {
  return protocol == device::Protocol::Simple ? slotBytes : messageRoom(protocol, slotBytes);
}

/// The largest slots up to `slotBytes` whose messages have no more than `most` bytes, or the smallest that there are.
std::uint32_t slotFor(device::Protocol protocol, std::uint32_t slotBytes, std::size_t most) {
  // As slotBytesFor() in comm/agreement/wishes.h rounds what is asked for.
  static constexpr std::array<std::uint32_t, device::kProtocols> kUnits{2 * device::kGrainBytes, 2048,
                                                                        device::kGrainBytes};
  const std::uint32_t unit = kUnits[static_cast<std::size_t>(protocol)];
  std::uint32_t slot = slotBytes / unit * unit;
  while (slot > unit && longestMessage(protocol, slot) > most) slot -= unit;
  return slot;
}

std::string nameOf(const topo::PeerInfo& rank, const std::string& numbering) {
  std::string name = transport::rankText(rank);
  if (!numbering.empty()) name.insert(name.rfind(')'), fmt::format(", in {}", numbering));
  return name;
}

}  // namespace

trace::StepWords stepWords(const NetPath& path, device::Protocol protocol) {
  return {path.link.peer.rank, static_cast<std::uint16_t>(path.link.channel), static_cast<std::uint8_t>(protocol),
          static_cast<std::uint8_t>(path.link.kind)};
}

std::string NetPath::brief() const {
  return fmt::format("{} {} by {} on channel {}", direction == device::Direction::Send ? "send to" : "receive from",
                     nameOf(link.peer, numbering), description, link.channel);
}

std::string NetPath::text() const {
  return fmt::format("{} of {}", brief(), nameOf(link.self, numbering));
}

bool NetPath::peerHasLeft() const {
  return farewells != nullptr && farewells->hasLeft(link.peer.rank);
}

std::string NetPath::exitOf(int rank) const {
  return farewells != nullptr ? farewells->exitOf(rank) : std::string();
}

std::string NetPath::departureText() const {
  std::string exit = exitOf(link.peer.rank);
  if (!exit.empty()) return exit;
  return numbering.empty()
             ? fmt::format("rank {} has left the communicator", link.peer.rank)
             : fmt::format("{} has left all communicators that use this connection", nameOf(link.peer, numbering));
}

/// Who destroyed its communicator did not call what the other calls; who has ended may have been about to.
ncclResult_t NetPath::departureCode() const {
  return !exitOf(link.peer.rank).empty() ? ncclRemoteError : ncclInvalidUsage;
}

Status failNet(const NetPath& path, Status cause, std::string_view call) {
  if (path.peerHasLeft()) return cause;
  const std::string said = lastErrorText();
  return fail(cause.code(), "{} failed in {}: {}", path.text(), call,
              said.empty() ? "the network gave no reason" : said);
}

std::string LaneFacts::place() const {
  static constexpr std::array<const char*, device::kProtocols> kProtocolNames{"LL", "LL128", "Simple"};
  return fmt::format("{} step {}", kProtocolNames[static_cast<std::size_t>(protocol)], step);
}

std::string LaneFacts::waits() const {
  struct Words {
    const char* before;
    bool counted;
  };
  // By LaneWait.
  static constexpr std::array<Words, 10> kWords{{{"a kernel", false},
                                                 {"the lines of", true},
                                                 {"the network to take", true},
                                                 {"the network to finish", true},
                                                 {"the network to take a receive", false},
                                                 {"a message", false},
                                                 {"the flush of", true},
                                                 {"a kernel to free a slot", false},
                                                 {"other channels to ask for an earlier message", false},
                                                 {"the network to deliver what it took", false}}};
  const Words& words = kWords[static_cast<std::size_t>(wait)];
  std::string text = fmt::format("waits for {}", words.before);
  if (words.counted) text += fmt::format(" {} bytes", bytes);
  return text;
}

std::optional<LaneFacts> factsToShow(std::initializer_list<const LaneReport*> reports) {
  std::optional<LaneFacts> shown;
  for (const LaneReport* report : reports) {
    if (report == nullptr) continue;
    const LaneFacts facts = report->facts();
    const bool further = !shown || (facts.idle() == shown->idle() && facts.step > shown->step);
    if (further || (shown->idle() && !facts.idle())) shown = facts;
  }
  return shown;
}

std::size_t messageRoom(device::Protocol protocol, std::uint32_t slotBytes) {
  constexpr std::size_t kUnit = 64;
  if (slotBytes == 0) return 0;
  return (sizeof(MessageHead) + contentRoom(protocol, slotBytes) + kUnit - 1) / kUnit * kUnit;
}

Status checkSlotsFit(const NetPath& path, plugin::Net& net, int netDevice) {
  // By Protocol.
  static constexpr std::array<const char*, device::kProtocols> kBuffers{"NCCL_LL_BUFFSIZE", "NCCL_LL128_BUFFSIZE",
                                                                        "NCCL_BUFFSIZE"};
  const auto properties = net.properties(netDevice);
  if (!properties.ok()) return failNet(path, properties.status(), "asking for the device's properties");
  const std::size_t most = properties.value().maxP2pBytes;
  std::size_t longest = 0;
  std::string remedies;
  for (const device::Protocol protocol : {device::Protocol::Simple, device::Protocol::LL, device::Protocol::LL128}) {
    const auto index = static_cast<std::size_t>(protocol);
    const std::uint32_t slotBytes = path.link.slotBytes[index];
    const std::size_t bytes = longestMessage(protocol, slotBytes);
    if (most == 0 || bytes <= most) continue;
    longest = std::max(longest, bytes);
    remedies += fmt::format("{}{} to {}", remedies.empty() ? "" : ", ", kBuffers[index],
                            slotFor(protocol, slotBytes, most) * device::kSteps);
  }
  if (remedies.empty()) return {};
  return fail(ncclInvalidUsage,
              "{}: the network takes at most {} bytes at once, a step has {}; set {} or less on all ranks", path.text(),
              most, longest, remedies);
}

}  // namespace tutti::net

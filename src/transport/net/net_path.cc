#include "transport/net/net_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/log.h"
#include "transport/net/net_lines.h"

namespace tutti::net {

std::string NetPath::direction() const {
  return fmt::format("{} {} by {} on channel {}", side == Side::Sender ? "send to" : "receive from",
                     transport::rankText(link.peer), description, link.channel);
}

std::string NetPath::text() const {
  return fmt::format("{} of {}", direction(), transport::rankText(link.self));
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

Status checkSlotsFit(const NetPath& path, Net& net, int netDevice) {
  using device::Protocol;
  const auto properties = net.properties(netDevice);
  if (!properties.ok()) return failNet(path, properties.status(), "asking for the device's properties");
  const std::size_t most = properties.value().maxP2pBytes;
  const auto slotBytesOf = [&](Protocol protocol) { return path.link.slotBytes[static_cast<std::size_t>(protocol)]; };
  std::size_t slot = slotBytesOf(Protocol::Simple);
  for (const Protocol protocol : {Protocol::LL, Protocol::LL128}) {
    slot = std::max(slot, messageRoom(protocol, slotBytesOf(protocol)));
  }
  if (most == 0 || slot <= most) return {};
  return fail(
      ncclInvalidUsage,
      "{}: the network takes at most {} bytes at once, a slot has {}; set NCCL_BUFFSIZE to {} or less on all ranks",
      path.text(), most, slot, most * device::kSteps);
}

}  // namespace tutti::net

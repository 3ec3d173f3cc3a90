#include "comm/diagnosis/stall_lines.h"

#include <fmt/format.h>

#include <vector>

#include "base/hash.h"
#include "device/kernels/kernel_name.h"

namespace tutti::comm {

namespace {

std::string slots(std::uint64_t first, std::uint64_t end) {
  return end - first == 1 ? fmt::format("slot {}", first) : fmt::format("slots {}..{}", first, end - 1);
}

std::string counted(std::uint64_t n) {
  return fmt::format("{} slot{}", n, n == 1 ? "" : "s");
}

std::optional<EndWait> senderWait(const EndReading& end) {
  // By LL and LL128 only the receiver counts: whether the sender has room is not known here.
  if (end.protocol != device::Protocol::Simple || end.produced == end.consumed) return std::nullopt;
  const std::string open = slots(end.consumed, end.produced);
  const bool full = end.produced - end.consumed >= device::kSteps;
  const char* how = end.kind == device::ConnKind::Mesh ? ", so to post its receive" : "";
  if (full) return EndWait{true, fmt::format("waits for rank {} to take {}{}", end.peer, open, how)};
  return EndWait{false, fmt::format("rank {} has not taken {} yet", end.peer, open)};
}

std::optional<EndWait> receiverWait(const EndReading& end) {
  if (end.protocol == device::Protocol::Simple && end.produced != end.consumed) {
    return EndWait{false, fmt::format("{} came and {} not been taken yet", slots(end.consumed, end.produced),
                                      end.produced - end.consumed == 1 ? "has" : "have")};
  }
  return EndWait{true, fmt::format("waits for rank {} to fill slot {}", end.peer, end.consumed)};
}

std::string countsOf(const EndReading& end) {
  if (end.direction == device::Direction::Recv) return counted(end.consumed) + " received";
  if (end.protocol != device::Protocol::Simple) return counted(end.consumed) + " taken";
  return fmt::format("{} sent, {} taken", counted(end.produced), end.consumed);
}

}  // namespace

std::uint64_t fingerprintOf(std::span<const EndReading> ends, std::span<const std::uint64_t> others) {
  std::vector<std::uint64_t> facts(others.begin(), others.end());
  for (const EndReading& end : ends) {
    facts.push_back(end.produced);
    facts.push_back(end.consumed);
    facts.push_back(hashBytes(std::as_bytes(std::span(end.task))));
  }
  return hashBytes(std::as_bytes(std::span(facts)));
}

std::optional<EndWait> waitOf(const EndReading& end) {
  // What it sent before came all: whoever waits for it waits in vain. A receiver looks like one that waits.
  if (end.left) {
    return EndWait{end.direction == device::Direction::Recv,
                   fmt::format("rank {} has left the communicator", end.peer)};
  }
  std::optional<EndWait> wait = end.direction == device::Direction::Send ? senderWait(end) : receiverWait(end);
  if (end.task.empty()) return wait;
  // The kernel waits for the host thread, which knows better.
  return EndWait{wait && wait->waits, "the host thread: " + end.task};
}

std::string describeEnd(const EndReading& end, const std::string& peer, const EndWait& wait) {
  return fmt::format("channel {}, {} {} by {}, {}{}: {}", end.channel,
                     end.direction == device::Direction::Send ? "to" : "from", peer, end.transport,
                     device::protocolName(end.protocol), end.left ? "" : ", " + countsOf(end), wait.text);
}

}  // namespace tutti::comm

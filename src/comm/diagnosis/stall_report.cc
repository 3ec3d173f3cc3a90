// What a probe tells of a stall.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "comm/connect/awaited_peers.h"
#include "comm/diagnosis/call_log.h"
#include "comm/diagnosis/stall_probe.h"
#include "comm/launch/launch.h"
#include "comm/network/relays.h"
#include "device/kernels/kernel_name.h"
#include "proxy/task.h"
#include "topo/machine/rank_layout.h"

namespace tutti::comm {

namespace {

/// Of a line of the log, which carries no more than 1,023 bytes, prefix included.
constexpr std::size_t kLineRoom = 880;

}  // namespace

/// The same for people.
std::vector<std::string> Probe::awaited() const {
  std::vector<std::string> lines;
  if (connecting_ == nullptr) return lines;
  for (const LinkRequest& link : at_.awaited.all()) {
    const std::string part = !connectsMessages(connecting_)              ? fmt::format("call {}", connecting_)
                             : link.direction == device::Direction::Send ? std::string("post its receive")
                                                                         : std::string("post its send");
    std::string line = fmt::format("waits for {} to {}", peerText(link.peer), part);
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
  }
  return lines;
}

std::string Probe::headline(const RankState& own) const {
  const std::string& who = at_.who;
  const double seconds = own.forMs / 1000.0;
  switch (own.doing) {
    case RankDoing::Idle:
      return fmt::format("{}: nothing is under way, {} operations were launched", who, own.launched);
    case RankDoing::Connecting:
      return fmt::format("{}: a call of {} has waited for {:.1f} s to be connected with other ranks", who,
                         operationOf(own), seconds);
    case RankDoing::Running:
    case RankDoing::Stalled:
    case RankDoing::Deaf:
      break;
  }
  return fmt::format("{}: {}, number {} of this communicator, has been under way for {:.1f} s{}", who,
                     at_.launcher.lastLaunch(), own.launched, seconds,
                     own.doing == RankDoing::Stalled ? " and does not move" : "");
}

std::string Probe::peerText(int rank) const {
  const topo::PeerInfo& peer = at_.peers[static_cast<std::size_t>(rank)];
  return fmt::format("rank {} (host {}, device {}, pid {})", rank, peer.hostName.data(), peer.cudaDevice, peer.pid);
}

Diagnosis Probe::verdict(const RankState& own) const {
  StallCase stall;
  stall.self = at_.rank;
  stall.nRanks = at_.nRanks;
  stall.own = own;
  // What came a moment before the question counts: everybody asks at about the same time, and answers once a second.
  stall.answers = at_.board.since(*askedAt_ - kBetweenWords);
  stall.limit = clock_.limit();
  stall.hasLeft = [&bootstrap = at_.bootstrap](int rank) { return bootstrap.hasLeft(rank); };
  stall.describe = [this](int rank) { return peerText(rank); };
  stall.parent = [&bootstrap = at_.bootstrap](int rank) { return bootstrap.parentOf(rank); };
  stall.callOf = [&calls = at_.calls](std::uint64_t n) { return calls.atOrBegun(n); };
  return judgeStall(stall);
}

std::vector<std::string> Probe::waits() const {
  std::vector<std::string> lines;
  if (!kernelsRun_ || !readAt_) {
    lines = awaited();
    for (std::string& line : underWay()) lines.push_back(std::move(line));
    return lines;
  }
  if (deaf_) return {"the device does not let its counters be read"};
  for (const EndReading& end : reader_->ends()) {
    if (const auto wait = waitOf(end)) lines.push_back(describeEnd(end, peerText(end.peer), *wait));
  }
  if (const proxy::ProgressTask* const task = collNet(); task != nullptr && !task->quiet()) {
    lines.push_back(task->describe());
  }
  for (std::string& line : underWay()) lines.push_back(std::move(line));
  if (reader_->leftOut() > 0) lines.push_back(fmt::format("{} more connections", reader_->leftOut()));
  return lines;
}

std::vector<std::string> Probe::underWay() const {
  return at_.relays != nullptr ? at_.relays->underWay() : std::vector<std::string>();
}

void Probe::tell(Time now, const std::string& text) const {
  clock_.alarms(now) ? alarm("Stall: {}", text) : warn("Stall: {}", text);
}

void Probe::tellStall(Time now, const std::string& head, const std::string& verdict,
                      const std::vector<std::string>& waits) const {
  std::string text = fmt::format("{}. {}", head, verdict);
  std::size_t told = 0;
  for (; told < waits.size() && text.size() + waits[told].size() + 2 < kLineRoom; ++told) {
    text += (told == 0 ? ". " : "; ") + waits[told];
  }
  if (told < waits.size()) text += fmt::format("; and {} more connections", waits.size() - told);
  tell(now, text);
}

/// Its sentences name all that a headline would.
void Probe::tellCircle(Time now) {
  tell(now, at_.who + ": " + circle_.text);
  circleTold_ = true;
}

void Probe::conclude(Time now) {
  const RankState own = state(now);
  const std::string head = headline(own);
  // What moves holds nobody up, and its numbers are not those that others had when they answered.
  const bool moves = clock_.movedAfter(*askedAt_);
  Diagnosis who = moves ? Diagnosis{"it moves", true} : verdict(own);
  if (!moves && circle_.closed) {
    who = {circle_.text};
  } else if (!moves && !circle_.text.empty()) {
    who.text += ". " + circle_.text;
  }
  std::vector<std::string> lines = waits();
  askedAt_.reset();
  if (who.moves) {
    notBefore_ = now + clock_.quiet();
  } else if (stalled_) {
    circle_.closed ? tellCircle(now) : tellStall(now, head, who.text, lines);
    clock_.report(now);
    sweep_.reset();  // it may move again
  }
  if (!std::exchange(inquired_, false)) return;
  answer_ = {head, who.text};
  answer_.insert(answer_.end(), lines.begin(), lines.end());
}

}  // namespace tutti::comm

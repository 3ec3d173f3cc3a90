// What a rank hears of the bootstrap root, and how it learns that it is gone.
#include <fmt/core.h>

#include "base/log.h"
#include "bootstrap/loop/connection_loop.h"

namespace tutti::bootstrap {

void ConnectionLoop::onRootFrame(Entry& entry, Frame frame) {
  if (frame.type() == FrameType::Welcome) {
    if (const auto welcome = decodeValue<Welcome>(frame.payload)) s_.root = *welcome;
    return;
  }
  if (frame.type() == FrameType::Notice) {
    if (auto notice = decodeNotice(frame.payload)) record(std::move(*notice), 0, true);
    return;
  }
  if (frame.type() == FrameType::Placement) s_.placed = true;
  if (frame.type() == FrameType::LeaderFound) entry.left = true;  // its root has nothing more to say
  const int tag = frame.header.type;
  deliver(Channel::Root, -1, tag, std::move(frame));
}

void ConnectionLoop::onRootEnd(const Link::End& end, const Address& at) {
  if (s_.rootDone || s_.failure || (s_.placed && s_.root.rank < 0)) return;
  const std::string host = textOf(s_.root.host);
  const std::string how = end.error != 0 ? fmt::format(": {}", errnoText(end.error)) : "";
  if (s_.root.pid == 0) {
    // It has not said a word: of whose process it is nothing is known but what the id says.
    const int rank = rootRank();
    return record({rank, ncclRemoteError, "",
                   fmt::format("Bootstrap: {} at {} closed its connection to rank {} without a word{}: did its process "
                               "end, or is the id in use by another job?",
                               rank == 0 ? "rank 0, which runs the bootstrap root" : "the bootstrap root", at.text(),
                               options_.rank, how)},
                  0, true);
  }
  record({rootRank(), ncclRemoteError, host,
          fmt::format("Bootstrap: {} ended while the communicator was being made: the root at {} closed the "
                      "connection{}; look for the first error there",
                      rootText(), at.text(), how),
          Cause::Died, s_.root.pid},
         0, true);
}

/// The rank in whose process the root lives; -1 while not known.
int ConnectionLoop::rootRank() const {
  return s_.root.rank < 0 && options_.rank0IsRoot ? 0 : s_.root.rank;
}

/// Whose process the root lives in, once it has said so.
std::string ConnectionLoop::rootText() const {
  const std::string host = textOf(s_.root.host);
  if (rootRank() >= 0) return rankText(rootRank(), host, s_.root.pid);
  return fmt::format("process {} on host {}, which made the unique id,", s_.root.pid, host);
}

void ConnectionLoop::onRootSilence(const Address& at) {
  if (s_.rootDone) return;
  const bool known = s_.root.pid != 0;
  record({rootRank(), ncclRemoteError, textOf(s_.root.host),
          fmt::format("Bootstrap: {} has given rank {} no sign of life for {} ms: is its process stopped (SIGSTOP, a "
                      "debugger), its host frozen, or the network cut? Or has it ended while a child that it forked "
                      "holds its sockets? TUTTI_PEER_TIMEOUT_MS sets the time allowed",
                      known ? rootText() : "the bootstrap root at " + at.text(), options_.rank,
                      options_.peerTimeout.count()),
          Cause::Silent, s_.root.pid},
         0, true);
}

}  // namespace tutti::bootstrap

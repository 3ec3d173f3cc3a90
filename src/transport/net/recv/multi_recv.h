// Receives of several channels posted as one, over the network connection that they share.
//
// A network with such receives matches a message with a place of its tag in the oldest of them that still has one free,
// and nothing behind that: what is first there has to come first. So they are posted in the order of RecvSequence, and
// one holds parts of one message only, a step of each channel at most. docs/network.md argues why nobody waits for
// ever.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "plugin/network/net.h"
#include "transport/net/recv/recv_sequence.h"

namespace tutti::net {

/// What a lane would have posted next.
struct AskedReceive {
  plugin::NetBuffer into;
  device::RecvOrder turn;
  bool flushes = false;  ///< what comes has to be flushed before a kernel may look
};

/// Where a lane finds what became of its receive.
struct RecvTicket {
  std::uint64_t group = 0;
  std::uint32_t part = 0;
};

/// A lane whose receives are posted together with others'.
class MultiRecvLane {
 public:
  /// The next receive, if its kernel has asked for it.
  virtual std::optional<AskedReceive> asked() const = 0;
  /// That one has been posted.
  virtual void posted(RecvTicket ticket) = 0;

 protected:
  ~MultiRecvLane() = default;
};

/// The receives of one network connection. Used by one thread at a time: lanes of one communicator on one device.
class MultiRecv {
 public:
  /// `mostParts`: of one receive, 1 to kMostParts.
  MultiRecv(std::shared_ptr<RecvSequence> turns, int mostParts)
      : turns_(std::move(turns)), mostParts_(static_cast<std::uint32_t>(mostParts)) {}
  MultiRecv(const MultiRecv&) = delete;
  MultiRecv& operator=(const MultiRecv&) = delete;
  static constexpr int kMostParts = 8;

  /// The connection is there. Before the first post().
  void use(plugin::Net& net, void* connection) { net_ = &net, connection_ = connection; }
  /// `lane` takes part until leave(), which its end must call: nobody asks for what was posted for it from then on.
  void join(MultiRecvLane& lane) { lanes_.push_back(&lane); }
  void leave(MultiRecvLane& lane);

  /// Posts what lanes have asked for and whose turn it is; whether there was anything. Errors: the network's. It takes
  /// no further receives then, but those that are under way may still come.
  Result<bool> post();
  /// The network has no room for a receive that is due.
  bool refused() const { return refused_; }
  /// Whether the receive has come, all parts of it, and been flushed. Errors: the network's, the same to every lane.
  Result<bool> received(RecvTicket ticket);
  /// It has come, and what came is being flushed.
  bool flushing(RecvTicket ticket) const { return at(ticket).phase == Phase::Flushing; }
  /// Once, after received(): the bytes that came. The ticket is void then.
  int take(RecvTicket ticket);

 private:
  /// So many requests a network has for each connection (NCCL_NET_MAX_REQUESTS).
  static constexpr std::uint64_t kMostGroups = 32;
  enum class Phase : std::uint8_t { Posted, Flushing, Here };
  struct Part {
    MultiRecvLane* lane = nullptr;  ///< null: it has left, or has taken the part
    AskedReceive receive;
  };
  struct Group {
    Phase phase = Phase::Posted;
    void* request = nullptr;  ///< or of the flush, when that has been asked for
    std::uint32_t nParts = 0;
    std::uint32_t left = 0;  ///< parts that have not been taken
    std::array<Part, kMostParts> parts{};
    std::array<int, kMostParts> sizes{};
  };
  struct Failure {
    Status why;
    std::string said;
  };
  using Buffers = std::array<plugin::NetBuffer, kMostParts>;

  Group& at(RecvTicket ticket) { return groups_[ticket.group % kMostGroups]; }
  const Group& at(RecvTicket ticket) const { return groups_[ticket.group % kMostGroups]; }
  void gather(Group& group) const;
  Result<bool> postOne(Group& group);
  Result<bool> flush(Group& group);
  /// Forgets the oldest groups that have been taken.
  void retire();
  /// Remembers what the network has said, for it may say it only once; failedBefore() says it again.
  Status failed(Status why);
  Status dead(Status why);
  Status failedBefore() const;

  std::shared_ptr<RecvSequence> turns_;
  std::uint32_t mostParts_;
  plugin::Net* net_ = nullptr;
  void* connection_ = nullptr;
  std::vector<MultiRecvLane*> lanes_;
  std::uint64_t oldest_ = 0;  ///< groups oldest_ .. made_-1 are under way
  std::uint64_t made_ = 0;
  bool refused_ = false;  ///< group made_ is what the network had no room for: it is asked again with the same
  std::optional<Failure> failure_;  ///< the network takes no further receives …
  bool dead_ = false;               ///< … and nothing that was posted comes
  std::array<Group, kMostGroups> groups_{};
};

}  // namespace tutti::net

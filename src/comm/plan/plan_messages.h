// Messages are ordered by keys (epoch, round): the e-th message from rank s to rank d has epoch e, and the schedule
// says in which round s sends to d. Both its ends compute the same key. Under one key a rank has one send and one
// receive at most, since in a round of the schedule it sends to one rank and receives from one. Keys are ascending in
// every rank's list, and what a rank has to do under one key (its part of the round) is never torn between two
// launches. Neither protocol nor channels of a message enter the order: both ends compute them alike from its bytes,
// its round and whether they are on one node, and protocols do not share counters. Nor does the epoch enter the choice
// of channels: it counts within a group, and the two ends of a message may have cut their calls into groups differently
// (two sends in one group, two lone receives).
//
// Why no group can deadlock, wherever ranks cut their lists into launches. Suppose nothing moves although messages are
// left, and look at one with the smallest key K of all ranks. Its sender has completed everything with smaller keys,
// since nothing smaller is left; launches before the one that holds its part of round K hold only smaller keys, so they
// are over, and this one runs (or is about to: it waits for nothing but them). Within a launch the sending crew of a
// channel goes through sends alone, in order; those before K are over, so it stands at K. The same holds for the
// receiver and its receiving crew. Both ends are at work on the message, so it moves: a contradiction.
// Tearing a round would break the argument: the launch with its send could wait for a peer whose own launch waits, in a
// circle, for receives that come one launch later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "base/status.h"
#include "comm/plan/message_channels.h"
#include "comm/plan/plan.h"
#include "comm/plan/plan_schedule.h"

namespace tutti::comm {

struct PlanContext;

/// Collects messages in call order, then lays them out in rounds. Keeps nothing from one plan to the next but storage
/// and the schedule, which is made again for a communicator of another size.
class MessagePlanner {
 public:
  /// Appends the launches of the messages among `ops` and adds their peers.
  Status plan(const PlanContext& context, std::span<const Op> ops, Plan& plan);

 private:
  /// One half of a message as this rank knows it.
  struct Message {
    std::byte* buffer = nullptr;
    std::uint64_t bytes = 0;
    int peer = 0;
    int round = 0;  ///< of the schedule
    std::uint32_t epoch = 0;
    MessageChoice choice;

    auto key() const { return std::tuple(epoch, round); }
  };
  /// Messages in one direction.
  struct Half {
    std::vector<Message> messages;
    std::vector<std::uint32_t> counts;  ///< messages so far by peer; all 0 between plans
    void forget();
  };

  void begin(const PlanContext& context, Plan& plan);
  void add(const Op& op);
  void send(int peer, std::byte* buffer, std::uint64_t bytes);
  void recv(int peer, std::byte* buffer, std::uint64_t bytes);
  Status finish();
  void layOut();
  MessageChoice choiceFor(int peer, std::uint64_t bytes) const;
  bool sameNode(int peer) const;
  unsigned channelsTowards(int peer) const;
  Status checkSelf() const;
  ChannelRange channelsOf(const Message& message) const;
  void round(const Message* out, const Message* in);
  void openLaunch(std::size_t works);
  void append(const Message* out, const Message* in, ChannelRange range);
  void findPeers(std::span<const Message> sorted, std::vector<MessagePeer>& peers) const;

  const PlanContext* context_ = nullptr;  ///< of the plan that is being made; the same for plan_ and channels_
  Plan* plan_ = nullptr;
  unsigned channels_ = 1;  ///< for messages
  MessageSchedule schedule_{1, 1};
  Half sends_;
  Half recvs_;
};

}  // namespace tutti::comm

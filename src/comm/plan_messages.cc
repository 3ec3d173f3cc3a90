// Messages are ordered by keys (epoch, round): the e-th message from rank s to rank d has epoch e, and the schedule
// says in which round s sends to d. Both its ends compute the same key. Under one key a rank has one send and one
// receive at most, since in a round of the schedule it sends to one rank and receives from one. Keys are ascending in
// every rank's list, and what a rank has to do under one key (its part of the round) is never torn between two launches.
// Neither protocol nor channels of a message enter the order: both ends compute them alike from its bytes, its round and
// whether they are on one node, and protocols do not share counters. Nor does the epoch enter the choice of channels: it counts within a group, and the
// two ends of a message may have cut their calls into groups differently (two sends in one group, two lone receives).
//
// Why no group can deadlock, wherever ranks cut their lists into launches. Suppose nothing moves although messages are
// left, and look at one with the smallest key K of all ranks. Its sender has completed everything with smaller keys,
// since nothing smaller is left; launches before the one that holds its part of round K hold only smaller keys, so they
// are over, and this one runs (or is about to: it waits for nothing but them). Within a launch the sending crew of a
// channel goes through sends alone, in order; those before K are over, so it stands at K. The same holds for the
// receiver and its receiving crew. Both ends are at work on the message, so it moves: a contradiction.
// Tearing a round would break the argument: the launch with its send could wait for a peer whose own launch waits, in a
// circle, for receives that come one launch later.
#include <algorithm>
#include <tuple>

#include "base/log.h"
#include "comm/message_channels.h"
#include "comm/plan_parts.h"
#include "comm/plan_schedule.h"
#include "device/kernel_name.h"
#include "device/message_turn.h"

namespace tutti {
namespace {

using device::Func;
using device::P2pWork;

/// One half of a message as this rank knows it.
struct Message {
  std::byte* buffer = nullptr;
  std::uint64_t bytes = 0;
  int peer = 0;
  int round = 0;           ///< of the schedule
  std::uint32_t epoch = 0;
  MessageChoice choice;

  auto key() const { return std::tuple(epoch, round); }
};

/// Collects messages in call order, then lays them out in rounds.
class MessagePlanner {
 public:
  MessagePlanner(const PlanContext& context, Plan& plan)
      : context_(context), plan_(plan), schedule_(context.nRanks(), context.mostPerGroup),
        channels_(messageChannelsOf(context)), sent_(static_cast<std::size_t>(context.nRanks())), received_(static_cast<std::size_t>(context.nRanks())) {}

  void add(const Op& op) {
    const std::uint64_t bytes = op.count * device::typeBytes(op.datatype);
    auto* out = static_cast<std::byte*>(const_cast<void*>(op.sendbuff));  // never written: P2pWork::send is const
    auto* in = static_cast<std::byte*>(op.recvbuff);
    if (op.func == ApiFunc::Send) return send(op.root, out, bytes);
    if (op.func == ApiFunc::Recv) return recv(op.root, in, bytes);
    if (bytes == 0) return;
    const bool fromAll = op.func == ApiFunc::AlltoAll || (op.func == ApiFunc::Gather && op.root == context_.rank);
    const bool toAll = op.func == ApiFunc::AlltoAll || (op.func == ApiFunc::Scatter && op.root == context_.rank);
    if (toAll) {
      for (int r = 0; r < context_.nRanks(); ++r) send(r, out + static_cast<std::uint64_t>(r) * bytes, bytes);
    }
    if (fromAll) {
      for (int r = 0; r < context_.nRanks(); ++r) recv(r, in + static_cast<std::uint64_t>(r) * bytes, bytes);
    }
    if (op.func == ApiFunc::Gather) send(op.root, out, bytes);
    if (op.func == ApiFunc::Scatter) recv(op.root, in, bytes);
  }

  Status finish() {
    TRY(checkSelf());
    const auto byKey = [](const Message& a, const Message& b) { return a.key() < b.key(); };
    std::sort(sends_.begin(), sends_.end(), byKey);
    std::sort(recvs_.begin(), recvs_.end(), byKey);
    auto out = sends_.begin();
    auto in = recvs_.begin();
    while (out != sends_.end() || in != recvs_.end()) {
      const bool takeSend = in == recvs_.end() || (out != sends_.end() && out->key() <= in->key());
      const bool takeRecv = out == sends_.end() || (in != recvs_.end() && in->key() <= out->key());
      round(takeSend ? &*out : nullptr, takeRecv ? &*in : nullptr);
      if (takeSend) ++out;
      if (takeRecv) ++in;
    }
    for (PlannedLaunch& launch : plan_.launches) {
      device::numberTurns(launch.messages.data(), launch.messages.size(), context_.rank);
    }
    plan_.sendPeers = peersOf(sent_, [&](int peer) { return schedule_.roundOf(context_.rank, peer); });
    plan_.recvPeers = peersOf(received_, [&](int peer) { return schedule_.roundOf(peer, context_.rank); });
    return {};
  }

 private:
  void send(int peer, std::byte* buffer, std::uint64_t bytes) {
    std::uint32_t& count = sent_[static_cast<std::size_t>(peer)];
    sends_.push_back({buffer, bytes, peer, schedule_.roundOf(context_.rank, peer), count++, choiceFor(peer, bytes)});
  }
  void recv(int peer, std::byte* buffer, std::uint64_t bytes) {
    std::uint32_t& count = received_[static_cast<std::size_t>(peer)];
    recvs_.push_back({buffer, bytes, peer, schedule_.roundOf(peer, context_.rank), count++, choiceFor(peer, bytes)});
  }
  MessageChoice choiceFor(int peer, std::uint64_t bytes) const {
    return chooseMessage(context_.tuning, bytes, channelsTowards(peer), peer == context_.rank);
  }
  bool sameNode(int peer) const {
    if (context_.nodes.empty()) return true;
    return context_.nodes[static_cast<std::size_t>(peer)] == context_.nodes[static_cast<std::size_t>(context_.rank)];
  }
  unsigned channelsTowards(int peer) const { return channelsPerPeer(context_.messages, channels_, sameNode(peer)); }

  Status checkSelf() const {
    const std::uint32_t sent = sent_[static_cast<std::size_t>(context_.rank)];
    const std::uint32_t received = received_[static_cast<std::size_t>(context_.rank)];
    if (sent == received) return {};
    return fail(ncclInvalidUsage,
                "Trying to {} on rank {} ({} sends and {} receives to itself in this group): put both into one group",
                sent > received ? "send to self without a matching recv" : "recv to self without a matching send",
                context_.rank, sent, received);
  }

  /// A function of bytes and round: equal at both ends.
  ChannelRange channelsOf(const Message& message) const {
    return messageChannels(channels_, channelsTowards(message.peer), message.round, message.choice.nChannels);
  }

  void round(const Message* out, const Message* in) {
    const bool self = (out != nullptr ? out : in)->peer == context_.rank;
    if (self && out->buffer == in->buffer) return;
    const bool fused = out != nullptr && in != nullptr && (self || channelsOf(*out) == channelsOf(*in));
    openLaunch(fused || out == nullptr || in == nullptr ? 1 : 2);
    if (fused) return append(out, in, channelsOf(*out));
    if (out != nullptr) append(out, nullptr, channelsOf(*out));
    if (in != nullptr) append(nullptr, in, channelsOf(*in));
  }

  /// Makes sure that the last launch has room for a whole round.
  void openLaunch(std::size_t works) {
    const bool fits = !plan_.launches.empty() && plan_.launches.back().func == Func::SendRecv &&
                      plan_.launches.back().nWorks() + works <= device::kMaxWorksPerLaunch;
    if (fits) return;
    PlannedLaunch launch;
    launch.func = Func::SendRecv;
    plan_.launches.push_back(std::move(launch));
  }

  void append(const Message* out, const Message* in, ChannelRange range) {
    P2pWork work{};
    work.send = out != nullptr ? out->buffer : nullptr;
    work.sendBytes = out != nullptr ? out->bytes : 0;
    work.sendPeer = out != nullptr ? out->peer : -1;
    work.sendProtocol = out != nullptr ? out->choice.protocol : device::Protocol::Simple;
    work.recv = in != nullptr ? in->buffer : nullptr;
    work.recvBytes = in != nullptr ? in->bytes : 0;
    work.recvPeer = in != nullptr ? in->peer : -1;
    work.recvProtocol = in != nullptr ? in->choice.protocol : device::Protocol::Simple;
    work.channelLo = static_cast<std::uint8_t>(range.lo);
    work.channelHi = static_cast<std::uint8_t>(range.hi);
    PlannedLaunch& launch = plan_.launches.back();
    widen(launch, range.lo, range.hi, context_.policy().p2pThreads);
    launch.messages.push_back(work);
    // Sends and receives overlap: the slower half counts, roughly.
    const bool outSlower = in == nullptr || (out != nullptr && out->bytes > in->bytes);
    const MessageChoice& slower = outSlower ? out->choice : in->choice;
    launch.latencyUs = std::max(launch.latencyUs, slower.latencyUs);
    launch.transferUs += slower.microseconds - slower.latencyUs;
  }

  /// Direct algorithms need all channels between ranks of a node: such ranks are joined on all of them at once.
  template <class RoundOf>
  std::vector<MessagePeer> peersOf(const std::vector<std::uint32_t>& counts, RoundOf&& roundOf) const {
    std::vector<MessagePeer> peers;
    for (int r = 0; r < context_.nRanks(); ++r) {
      if (r == context_.rank || counts[static_cast<std::size_t>(r)] == 0) continue;
      MessagePeer& peer = peers.emplace_back(MessagePeer{.rank = r});
      if (!sameNode(r)) peer.channels = maskOf(peerChannels(channels_, channelsTowards(r), roundOf(r)));
    }
    return peers;
  }
  static ChannelMask maskOf(ChannelRange range) {
    return allChannels(static_cast<int>(range.hi + 1)) & ~allChannels(static_cast<int>(range.lo));
  }

  const PlanContext& context_;
  Plan& plan_;
  MessageSchedule schedule_;
  unsigned channels_;                    ///< for messages
  std::vector<std::uint32_t> sent_;      ///< messages so far, by destination
  std::vector<std::uint32_t> received_;  ///< the same by source
  std::vector<Message> sends_;
  std::vector<Message> recvs_;
};

}  // namespace

Status planMessages(const PlanContext& context, std::span<const Op> ops, Plan& plan) {
  MessagePlanner planner(context, plan);
  for (const Op& op : ops) {
    if (isMessageFunc(op.func)) planner.add(op);
  }
  return planner.finish();
}

}  // namespace tutti

#include "comm/plan/plan_messages.h"

#include <algorithm>

#include "base/log.h"
#include "comm/plan/plan_context.h"
#include "comm/tuning/choice.h"
#include "device/kernels/kernel_name.h"
#include "device/recv_sequence.h"

namespace tutti::comm {

namespace {

/// Messages that are kept room for from one plan to the next.
constexpr std::size_t kMessagesKept = 4096;

ChannelMask maskOf(ChannelRange range) {
  return allChannels(static_cast<int>(range.hi + 1)) & ~allChannels(static_cast<int>(range.lo));
}

}  // namespace

Status MessagePlanner::plan(const PlanContext& context, std::span<const Op> ops, Plan& plan) {
  const auto isMessage = [](const Op& op) { return isMessageFunc(op.func); };
  if (std::none_of(ops.begin(), ops.end(), isMessage)) return {};
  begin(context, plan);
  for (const Op& op : ops) {
    if (isMessage(op)) add(op);
  }
  const Status status = finish();
  sends_.forget();
  recvs_.forget();
  return status;
}

void MessagePlanner::Half::forget() {
  for (const Message& message : messages) counts[static_cast<std::size_t>(message.peer)] = 0;
  messages.clear();
  if (messages.capacity() > kMessagesKept) messages.shrink_to_fit();
}

void MessagePlanner::begin(const PlanContext& context, Plan& plan) {
  context_ = &context;
  plan_ = &plan;
  channels_ = messageChannelsOf(context);
  if (!schedule_.isFor(context.nRanks(), context.mostPerGroup)) {
    schedule_ = MessageSchedule(context.nRanks(), context.mostPerGroup);
  }
  const auto nRanks = static_cast<std::size_t>(context.nRanks());
  for (Half* half : {&sends_, &recvs_}) {
    half->forget();  // where the last plan ended with an exception
    if (half->counts.size() < nRanks) half->counts.resize(nRanks);
  }
}

void MessagePlanner::add(const Op& op) {
  const int nRanks = context_->nRanks();
  const std::uint64_t bytes = op.count * device::typeBytes(op.datatype);
  auto* out = static_cast<std::byte*>(const_cast<void*>(op.sendbuff));  // never written: P2pWork::send is const
  auto* in = static_cast<std::byte*>(op.recvbuff);
  if (op.func == ApiFunc::Send) return send(op.root, out, bytes);
  if (op.func == ApiFunc::Recv) return recv(op.root, in, bytes);
  if (bytes == 0) return;
  const bool fromAll = op.func == ApiFunc::AlltoAll || (op.func == ApiFunc::Gather && op.root == context_->rank);
  const bool toAll = op.func == ApiFunc::AlltoAll || (op.func == ApiFunc::Scatter && op.root == context_->rank);
  if (toAll) {
    for (int r = 0; r < nRanks; ++r) send(r, out + static_cast<std::uint64_t>(r) * bytes, bytes);
  }
  if (fromAll) {
    for (int r = 0; r < nRanks; ++r) recv(r, in + static_cast<std::uint64_t>(r) * bytes, bytes);
  }
  if (op.func == ApiFunc::Gather) send(op.root, out, bytes);
  if (op.func == ApiFunc::Scatter) recv(op.root, in, bytes);
}

void MessagePlanner::send(int peer, std::byte* buffer, std::uint64_t bytes) {
  const int round = schedule_.roundOf(context_->rank, peer);
  const std::uint32_t epoch = sends_.counts[static_cast<std::size_t>(peer)];
  sends_.messages.push_back({buffer, bytes, peer, round, epoch, choiceFor(peer, bytes)});
  ++sends_.counts[static_cast<std::size_t>(peer)];
}

void MessagePlanner::recv(int peer, std::byte* buffer, std::uint64_t bytes) {
  const int round = schedule_.roundOf(peer, context_->rank);
  const std::uint32_t epoch = recvs_.counts[static_cast<std::size_t>(peer)];
  recvs_.messages.push_back({buffer, bytes, peer, round, epoch, choiceFor(peer, bytes)});
  ++recvs_.counts[static_cast<std::size_t>(peer)];
}

Status MessagePlanner::finish() {
  TRY(checkSelf());
  for (Half* half : {&sends_, &recvs_}) {
    std::sort(half->messages.begin(), half->messages.end(),
              [](const Message& a, const Message& b) { return a.key() < b.key(); });
  }
  layOut();
  for (PlannedLaunch& launch : plan_->launches) {
    if (launch.func == device::Func::SendRecv) device::numberReceives(launch.args.p2p, launch.nWorks(), context_->rank);
  }
  findPeers(sends_.messages, plan_->sendPeers);
  findPeers(recvs_.messages, plan_->recvPeers);
  return {};
}

/// In order of their keys; what has one key makes one round.
void MessagePlanner::layOut() {
  auto out = sends_.messages.cbegin();
  auto in = recvs_.messages.cbegin();
  const auto lastOut = sends_.messages.cend();
  const auto lastIn = recvs_.messages.cend();
  while (out != lastOut || in != lastIn) {
    const bool takeSend = in == lastIn || (out != lastOut && out->key() <= in->key());
    const bool takeRecv = out == lastOut || (in != lastIn && in->key() <= out->key());
    round(takeSend ? &*out : nullptr, takeRecv ? &*in : nullptr);
    if (takeSend) ++out;
    if (takeRecv) ++in;
  }
}

MessageChoice MessagePlanner::choiceFor(int peer, std::uint64_t bytes) const {
  return chooseMessage(context_->tuning, bytes, channelsTowards(peer), peer == context_->rank);
}

bool MessagePlanner::sameNode(int peer) const {
  const std::vector<int>& nodes = context_->nodes;
  return nodes.empty() || nodes[static_cast<std::size_t>(peer)] == nodes[static_cast<std::size_t>(context_->rank)];
}

unsigned MessagePlanner::channelsTowards(int peer) const {
  return channelsPerPeer(context_->messages, channels_, sameNode(peer));
}

Status MessagePlanner::checkSelf() const {
  const std::uint32_t sent = sends_.counts[static_cast<std::size_t>(context_->rank)];
  const std::uint32_t received = recvs_.counts[static_cast<std::size_t>(context_->rank)];
  if (sent == received) return {};
  return fail(ncclInvalidUsage,
              "Trying to {} on rank {} ({} sends and {} receives to itself in this group): put both into one group",
              sent > received ? "send to self without a matching recv" : "recv to self without a matching send",
              context_->rank, sent, received);
}

/// A function of bytes and round: equal at both ends.
ChannelRange MessagePlanner::channelsOf(const Message& message) const {
  return messageChannels(channels_, channelsTowards(message.peer), message.round, message.choice.nChannels);
}

void MessagePlanner::round(const Message* out, const Message* in) {
  const bool self = (out != nullptr ? out : in)->peer == context_->rank;
  if (self && out->buffer == in->buffer) return;
  const bool fused = out != nullptr && in != nullptr && (self || channelsOf(*out) == channelsOf(*in));
  openLaunch(fused || out == nullptr || in == nullptr ? 1 : 2);
  if (fused) return append(out, in, channelsOf(*out));
  if (out != nullptr) append(out, nullptr, channelsOf(*out));
  if (in != nullptr) append(nullptr, in, channelsOf(*in));
}

/// Makes sure that the last launch has room for a whole round.
void MessagePlanner::openLaunch(std::size_t works) {
  std::vector<PlannedLaunch>& launches = plan_->launches;
  const bool fits = !launches.empty() && launches.back().func == device::Func::SendRecv &&
                    launches.back().nWorks() + works <= device::kMaxWorksPerLaunch;
  if (!fits) launches.emplace_back(KernelShape{.func = device::Func::SendRecv});
}

void MessagePlanner::append(const Message* out, const Message* in, ChannelRange range) {
  device::P2pWork work{};
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
  PlannedLaunch& launch = plan_->launches.back();
  launch.widen(range.lo, range.hi, context_->policy().p2pThreads);
  launch.add(work);
  // Sends and receives overlap: the slower half counts, roughly.
  const bool outSlower = in == nullptr || (out != nullptr && out->bytes > in->bytes);
  const MessageChoice& slower = outSlower ? out->choice : in->choice;
  launch.latencyUs = std::max(launch.latencyUs, slower.latencyUs);
  launch.transferUs += slower.microseconds - slower.latencyUs;
}

/// Direct algorithms need all channels between ranks of a node: such ranks are joined on all of them at once. Epoch 0,
/// with which the list begins, has one message of each peer.
void MessagePlanner::findPeers(std::span<const Message> sorted, std::vector<MessagePeer>& peers) const {
  for (const Message& message : sorted) {
    if (message.epoch != 0) break;
    if (message.peer == context_->rank) continue;
    MessagePeer& peer = peers.emplace_back(MessagePeer{.rank = message.peer});
    if (sameNode(peer.rank)) continue;
    peer.channels = maskOf(peerChannels(channels_, channelsTowards(peer.rank), message.round));
  }
  std::sort(peers.begin(), peers.end(), [](const MessagePeer& a, const MessagePeer& b) { return a.rank < b.rank; });
}

}  // namespace tutti::comm

#include "transport/net/ib/receiver.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "transport/net/ib/nic/nic.h"
#include "transport/net/ib/nic/options.h"
#include "transport/net/ib/nic/port.h"

namespace tutti::net::ib {

namespace {

/// Grants of a queue pair until one tells that they have gone.
constexpr std::uint32_t kTellEvery = 16;

}  // namespace

IbReceiver::IbReceiver(std::unique_ptr<IbLink> link, std::unique_ptr<FlushPairs> flush)
    : IbEnd(std::move(link), Agreement::Role::Receiver), flush_(std::move(flush)) {
  if (flush_ != nullptr && outlivesPorts()) flush_->expectFailures();
}

Status IbReceiver::postReceives(std::uint64_t row) {
  for (std::size_t k = 0; k < pairsInUse(); ++k) {
    const std::size_t pair = pairOf(row, k);
    ibv_recv_wr receive{};
    receive.wr_id = idOf(Work::Row, static_cast<std::uint32_t>(row % kIbRows));
    ibv_recv_wr* refused = nullptr;
    if (const int error = ibv_post_recv((*link_->pairs)[pair].get(), &receive, &refused); error != 0) {
      TRY(refusedWith(pair, "ibv_post_recv", error));
    } else {
      ++receiving_;
    }
  }
  return {};
}

/// Of the current row, in this end's memory.
void IbReceiver::writeGrants(std::span<const plugin::NetBuffer> messages) {
  const std::size_t place = row_ % kIbRows * sizeof(GrantRow);
  auto& row = *reinterpret_cast<GrantRow*>(link_->memory->data() + kGrantsAt + place);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const plugin::NetBuffer& message = messages[i];
    const auto* registration = static_cast<const IbRegistration*>(message.registration);
    Grant& grant = row.grants[i];
    grant.address = reinterpret_cast<std::uint64_t>(message.data);
    grant.capacity = message.bytes;
    for (std::size_t port = 0; port < link_->pairs->ports().size(); ++port) {
      const ibv_mr* const region = registration != nullptr ? registration->regions[port] : nullptr;
      grant.keys[port] = region != nullptr ? region->rkey : 0;
    }
    grant.count = static_cast<std::uint32_t>(messages.size());
    grant.tag = message.tag;
    grant.index = row_ + 1;
  }
}

/// One write of the whole row, over the first of its queue pairs.
Status IbReceiver::postGrants(std::uint64_t row, std::uint32_t count) {
  const std::size_t pair = pairOf(row, 0);
  const std::size_t place = row % kIbRows * sizeof(GrantRow);
  ibv_sge part{.addr = link_->memory->address() + kGrantsAt + place,
               .length = static_cast<std::uint32_t>(count * sizeof(Grant)),
               .lkey = link_->memory->localKey(link_->pairs->portOf(pair))};
  ibv_send_wr write{};
  write.sg_list = &part;
  write.num_sge = 1;
  write.opcode = IBV_WR_RDMA_WRITE;
  write.wr.rdma.remote_addr = link_->pairs->remote().memory + place;
  write.wr.rdma.rkey = link_->pairs->remote().ports[link_->pairs->remotePortOf(pair)].key;
  const std::uint32_t tells = (*link_->pairs)[pair].quietly(kTellEvery);
  write.wr_id = idOf(Work::Grant, tells);
  write.send_flags = tells > 0 ? IBV_SEND_SIGNALED : 0;
  if (link_->options.inlines && part.length <= sizeof(Grant)) write.send_flags |= IBV_SEND_INLINE;
  return post(pair, write, 1);
}

/// Grants may go on being under way when all that was granted has come. Then no request is open that anybody would
/// test, and this is where completions are taken.
Status IbReceiver::awaitRoom() {
  TRY(advance());
  if (halted()) return {};
  const std::size_t pair = pairOf(row_, 0);
  if ((*link_->pairs)[pair].hasRoomToSend(1)) return {};
  const auto now = SteadyClock::now();
  const auto bound = link_->options.lossBound();
  // What nobody looked at for long (this process was stopped) may have a completion behind those just taken.
  if (!fullSince_ || now - lookedAt_ > bound / 2) fullSince_ = now;
  lookedAt_ = now;
  if (now - *fullSince_ < bound) return {};
  const std::string why = fmt::format(
      "No grant has come to its end for {:.1f} s while {}, from {}: its NIC has acknowledged none of {} and "
      "failed none; {}. It has lost completions, or is stuck: look at dmesg, and update its firmware and driver",
      secondsSince(*std::exchange(fullSince_, std::nullopt)), deed(), link_->pairs->pathText(pair), kSends, openText());
  return loseOrBreak(pair, why);
}

std::string IbReceiver::openText() const {
  std::size_t count = 0;
  std::size_t bytes = 0;
  for (const IbRequest* request : rows_) {
    if (request == nullptr) continue;
    ++count;
    for (std::uint32_t i = 0; i < request->count; ++i) bytes += grantsOf(request->row).grants[i].capacity;
  }
  return fmt::format("open: {} {} with room for {} bytes", count, count == 1 ? "receive" : "receives", bytes);
}

Result<IbRequest*> IbReceiver::irecv(std::span<const plugin::NetBuffer> messages) {
  TRY(usable());
  if (messages.empty() || messages.size() > kMostRowMessages) {
    return fail(ncclInvalidArgument, "NET/IB : A receive is of 1 to {} messages, not of {}", kMostRowMessages,
                messages.size());
  }
  ASSIGN(const bool ready, carries());
  // The peer has closed in order: there is nobody to grant anything to.
  const bool left = link_->control->last() == ControlSocket::Peer::Left;
  const auto slot = static_cast<std::uint32_t>(row_ % kIbRows);
  if (rows_[slot] != nullptr || (!ready && !left)) return nullptr;
  if (!left && !(*link_->pairs)[pairOf(row_, 0)].hasRoomToSend(1)) {
    TRY(awaitRoom());
    return nullptr;
  }
  fullSince_.reset();
  IbRequest* const request = takeRequest();
  if (request == nullptr) return nullptr;
  request->left = static_cast<std::uint32_t>(pairsInUse());
  request->row = row_;
  request->count = static_cast<std::uint32_t>(messages.size());
  request->bytes = {};
  rows_[slot] = request;
  if (!left) {
    writeGrants(messages);
    TRY(postReceives(row_));
    TRY(postGrants(row_, request->count));
  }
  ++row_;
  return request;
}

void IbReceiver::completed(std::size_t pair, const ibv_wc& completion) {
  const std::uint32_t number = numberOf(completion.wr_id);
  if (workOf(completion.wr_id) == Work::Grant) return (*link_->pairs)[pair].completed(number);
  --receiving_;
  IbRequest* const request = rows_[number];
  if (request->count == 1) request->bytes[0] = ntohl(completion.imm_data);
  if (--request->left > 0) return;
  takeSizes(*request);
  rows_[number] = nullptr;
}

void IbReceiver::dropped(const ibv_wc& completion) {
  if (workOf(completion.wr_id) == Work::Row) --receiving_;
}

RowsSeen IbReceiver::rowsSeen() const {
  RowsSeen seen{.next = row_};
  for (std::uint32_t slot = 0; slot < kIbRows; ++slot) {
    if (rows_[slot] != nullptr) seen.bits |= std::uint64_t{1} << slot;
  }
  return seen;
}

Status IbReceiver::leave(const std::bitset<kMostChildren>& left) {
  return flush_ != nullptr ? flush_->use(left) : Status();
}

/// By rising numbers, as the sender does. A grant that the sender has is not written again: before that came, the row
/// may be done and another in its place.
Status IbReceiver::repost(const RowsSeen& peers, const Strands& strands) {
  receiving_ = 0;
  fullSince_.reset();
  if (flush_ != nullptr) TRY(flush_->use(portsOf(strands)));
  for (std::uint64_t row = row_ - std::min<std::uint64_t>(row_, kIbRows); row < row_; ++row) {
    IbRequest* const request = rows_[row % kIbRows];
    if (request == nullptr || request->row != row) continue;
    if (failsSomewhere()) return {};  // a later row would take what is for one that was refused
    request->left = static_cast<std::uint32_t>(pairsInUse());
    request->bytes = {};
    TRY(postReceives(row));
    if (!ibRowIsGranted(peers, row)) TRY(postGrants(row, request->count));
  }
  return {};
}

/// A NIC's read of what it has written comes back after it, whatever the bus has reordered: of the last message that is
/// not empty, through each port.
Result<IbRequest*> IbReceiver::iflush(std::span<const plugin::NetBuffer> messages) {
  TRY(usable());
  const auto last = std::find_if(messages.rbegin(), messages.rend(), [](const auto& one) { return one.bytes > 0; });
  if (flush_ == nullptr || last == messages.rend()) return nullptr;
  const auto* registration = static_cast<const IbRegistration*>(last->registration);
  std::array<std::uint32_t, kMostChildren> keys{};
  for (std::size_t port = 0; port < link_->pairs->ports().size(); ++port)
    keys[port] = registration->regions[port] != nullptr ? registration->regions[port]->rkey : 0;
  IbRequest* const request = takeRequest();
  // Null would say that there is nothing to wait for.
  if (request == nullptr) {
    return fail(ncclInternalError,
                "NET/IB : {}: there is no request left to flush what was received from {}; {}, and flushes, which have "
                "to be tested first",
                link_->options.who, place(), openText());
  }
  if (const Status begun = flush_->begin(reinterpret_cast<std::uint64_t>(last->data), keys); !begun.ok()) {
    return breakWith(begun);
  }
  request->count = 0;
  request->row = flush_->begun();
  request->left = 1;
  flushing_.push_back(request);
  return request;
}

Status IbReceiver::progress() {
  if (flushing_.empty()) return {};
  const auto finished = flush_->finished();
  if (!finished.ok()) return breakWith(finished.status());
  TRY(lookAtFlushes());
  for (; !flushing_.empty() && flushing_.front()->row <= finished.value(); flushing_.pop_front()) {
    flushing_.front()->left = 0;
  }
  return {};
}

/// A port that cannot flush what it writes is one to do without.
Status IbReceiver::lookAtFlushes() {
  const auto failed = flush_->failedPorts();
  for (std::size_t port = 0; failed.any() && port < link_->pairs->ports().size(); ++port) {
    if (!failed[port]) continue;
    const std::string why =
        fmt::format("A flush of what {} has written to GPU memory has failed", link_->pairs->ports()[port]->text());
    if (goesOnWithout(link_->pairs->ofPort(port), why)) continue;
    return breakWith(fail(ncclSystemError, "NET/IB : {}, for {}", why, place()));
  }
  return {};
}

/// As soon as the row is there: the next one in its place may come before the request is tested.
void IbReceiver::takeSizes(IbRequest& request) const {
  if (request.count <= 1) return;
  const auto* const sizes = reinterpret_cast<const SizeRow*>(link_->memory->data()) + request.row % kIbRows;
  std::memcpy(request.bytes.data(), sizes->sizes.data(), request.count * sizeof(std::uint32_t));
}

}  // namespace tutti::net::ib

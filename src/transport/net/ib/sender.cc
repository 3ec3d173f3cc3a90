#include "transport/net/ib/sender.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "base/log.h"
#include "transport/net/ib/nic/nic.h"
#include "transport/net/ib/nic/options.h"
#include "transport/net/ib/nic/port.h"

namespace tutti::net::ib {

IbSender::IbSender(std::unique_ptr<IbLink> link) : IbEnd(std::move(link), Agreement::Role::Sender) {
  adaptive_ = link_->pairs->remote().adaptive != 0 && link_->pairs->describe().adaptive != 0;
}

std::uint32_t IbSender::granted(std::uint64_t row) const {
  Grant* const grant = grants(row);
  const std::uint64_t index = row + 1;
  // The NIC writes ascending, the index last.
  if (std::atomic_ref(grant[0].index).load(std::memory_order_acquire) != index) return 0;
  const std::uint32_t count = std::min<std::uint32_t>(grant[0].count, kMostRowMessages);
  for (std::uint32_t i = 1; i < count; ++i) {
    if (std::atomic_ref(grant[i].index).load(std::memory_order_acquire) != index) return 0;
  }
  return count;
}

/// Lengths travel as 32 bits, and are told as int.
Status IbSender::checkLength(const plugin::NetBuffer& message) {
  constexpr std::size_t kMost = std::numeric_limits<int>::max();
  if (message.bytes <= kMost) return {};
  return fail(ncclInvalidArgument, "NET/IB : A message of {} bytes is longer than the {} that one may have",
              message.bytes, kMost);
}

Status IbSender::checkFits(const Grant& grant, const plugin::NetBuffer& message) {
  if (grant.address == 0) {
    return breakWith(fail(ncclInternalError, "NET/IB : The peer {} has granted a message without an address (tag {})",
                          place(), grant.tag));
  }
  if (message.bytes <= grant.capacity) return {};
  return breakWith(
      fail(ncclInvalidUsage,
           "NET/IB : A message of {} bytes to {} is longer than the {} bytes that the receiver has room for "
           "(tag {}): do both ranks call the same operation with the same count?",
           message.bytes, place(), grant.capacity, message.tag));
}

bool IbSender::announcesApart(std::size_t bytes) const {
  return adaptive_ && bytes > link_->options.adaptiveThreshold;
}

std::uint32_t IbSender::chainOf(const plugin::NetBuffer& message, std::uint32_t count) const {
  if (count > 1) return count + 1;
  return announcesApart(message.bytes) ? 2 : 1;
}

bool IbSender::hasRoomFor(std::uint64_t row, std::uint32_t chain) const {
  for (std::size_t k = 0; k < pairsInUse(); ++k) {
    if (!(*link_->pairs)[pairOf(row, k)].hasRoomToSend(chain)) return false;
  }
  return true;
}

Result<IbRequest*> IbSender::isend(const plugin::NetBuffer& message) {
  TRY(usable());
  TRY(checkLength(message));
  ASSIGN(const bool ready, carries());
  const std::uint32_t count = ready && again_ == row_ ? granted(row_) : 0;
  if (count == 0) {
    TRY(idle());
    return nullptr;
  }
  Grant* const row = grants(row_);
  Row& sent = at(row_);
  const std::uint32_t chain = chainOf(message, count);
  // With other queue pairs than at first, a row that has some of its messages may find less room.
  if (sent.left > 0 || !hasRoomFor(row_, chain)) return nullptr;
  if (matched_ == 0) {
    sent.count = count;
    sent.requests = {};
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    if (sent.requests[i] != nullptr || row[i].tag != message.tag) continue;
    TRY(checkFits(row[i], message));
    IbRequest* const request = takeRequest();
    if (request == nullptr) return nullptr;
    request->left = 1;  // at least, until the row is posted
    request->row = row_;
    request->bytes[0] = static_cast<std::uint32_t>(message.bytes);
    sent.requests[i] = request;
    sent.chain = chain;
    sent.messages[i] = message;
    if (++matched_ < count) return request;
    TRY(postRow(row_));
    again_ = ++row_;
    matched_ = 0;
    return request;
  }
  TRY(idle());
  return nullptr;
}

/// On queue pair `pair`, the k-th of the row: the part of each message that it carries, then the announcement.
Status IbSender::postOn(std::uint64_t number, std::size_t pair, std::size_t k) {
  const Row& row = at(number);
  const auto slot = static_cast<std::uint32_t>(number % kIbRows);
  const std::size_t port = link_->pairs->portOf(pair);
  const std::size_t remotePort = link_->pairs->remotePortOf(pair);
  const Grant* const grant = grants(number);
  std::array<ibv_sge, kMostRowMessages + 1> parts{};
  std::array<ibv_send_wr, kMostRowMessages + 1> chain{};
  for (std::uint32_t i = 0; i < row.count; ++i) {
    const plugin::NetBuffer& message = row.messages[i];
    const std::size_t piece = ibPieceBytes(message.bytes, pairsInUse());
    const std::size_t offset = std::min(k * piece, message.bytes);
    const auto bytes = static_cast<std::uint32_t>(std::min(piece, message.bytes - offset));
    if (bytes > 0) {
      const auto* registration = static_cast<const IbRegistration*>(message.registration);
      // The NIC had failed when the memory was registered, of which this end has not taken notice.
      if (registration->regions[port] == nullptr) return refusedWith(pair, "ibv_reg_mr", ENODEV);
      parts[i] = {.addr = reinterpret_cast<std::uint64_t>(message.data) + offset,
                  .length = bytes,
                  .lkey = registration->regions[port]->lkey};
    }
    chain[i].sg_list = &parts[i];
    chain[i].num_sge = bytes > 0 ? 1 : 0;
    chain[i].opcode = IBV_WR_RDMA_WRITE;
    chain[i].wr.rdma.remote_addr = grant[i].address + offset;
    chain[i].wr.rdma.rkey = grant[i].keys[remotePort];
  }
  // One message announces itself by its length; of several the lengths are written first.
  ibv_send_wr& last = chain[row.chain - 1];
  if (row.count > 1) {
    const std::size_t place = slot * sizeof(SizeRow);
    parts[row.count] = {.addr = link_->sizes->address() + place,
                        .length = static_cast<std::uint32_t>(row.count * sizeof(std::uint32_t)),
                        .lkey = link_->sizes->localKey(port)};
    last.sg_list = &parts[row.count];
    last.num_sge = 1;
    last.wr.rdma.remote_addr = link_->pairs->remote().memory + place;
    last.wr.rdma.rkey = link_->pairs->remote().ports[remotePort].key;
  } else if (row.chain > 1) {
    last.wr.rdma = chain[0].wr.rdma;
  }
  last.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  last.imm_data = htonl(static_cast<std::uint32_t>(row.messages[0].bytes));
  last.send_flags = IBV_SEND_SIGNALED;
  last.wr_id = idOf(Work::Row, slot);
  for (std::uint32_t i = 0; i + 1 < row.chain; ++i) chain[i].next = &chain[i + 1];
  return post(pair, chain[0], row.chain);
}

Status IbSender::postRow(std::uint64_t number) {
  Row& row = at(number);
  auto& sizes = reinterpret_cast<SizeRow*>(link_->sizes->data())[number % kIbRows];
  for (std::uint32_t i = 0; i < row.count; ++i) sizes.sizes[i] = static_cast<std::uint32_t>(row.messages[i].bytes);
  row.left = static_cast<std::uint32_t>(pairsInUse());
  for (std::uint32_t i = 0; i < row.count; ++i) row.requests[i]->left = row.left;
  for (std::size_t k = 0; k < pairsInUse(); ++k) TRY(postOn(number, pairOf(number, k), k));
  return {};
}

void IbSender::completed(std::size_t pair, const ibv_wc& completion) {
  Row& row = rows_[numberOf(completion.wr_id)];
  (*link_->pairs)[pair].completed(row.chain);
  --row.left;
  for (std::uint32_t i = 0; i < row.count; ++i) --row.requests[i]->left;
}

std::string IbSender::openText() const {
  std::size_t count = 0;
  std::size_t bytes = 0;
  for (const Row& row : rows_) {
    if (row.left == 0) continue;
    count += row.count;
    for (std::uint32_t i = 0; i < row.count; ++i) bytes += row.messages[i].bytes;
  }
  return fmt::format("open: {} {} of {} bytes", count, count == 1 ? "message" : "messages", bytes);
}

RowsSeen IbSender::rowsSeen() const {
  RowsSeen seen{.next = row_};
  for (std::uint64_t i = 0; i < kIbRows; ++i) {
    if (granted(row_ + i) > 0) seen.bits |= std::uint64_t{1} << i;
  }
  return seen;
}

/// What the receiver has is done, whatever has been acknowledged; the rest goes again.
Status IbSender::repost(const RowsSeen& peers, const Strands& strands) {
  static_cast<void>(strands);
  again_ = row_ - std::min<std::uint64_t>(row_, kIbRows);
  for (std::uint64_t number = again_; number < row_; ++number) {
    Row& row = at(number);
    const bool open = ibRowIsOpen(peers, number);
    if (row.left == 0 && open) {
      return fail(ncclSystemError,
                  "NET/IB : {} has not got message {} to {}, which the NIC had acknowledged before it failed: it may "
                  "be overwritten by now. Look at dmesg",
                  place(), number, link_->pairs->remote().who.data());
    }
    if (row.left == 0 || open) continue;
    row.left = 0;
    for (std::uint32_t i = 0; i < row.count; ++i) row.requests[i]->left = 0;
  }
  return postAgain();
}

Status IbSender::progress() {
  return halted() ? Status() : postAgain();
}

/// As far as there is room, and before anything new: the receiver has posted its receives in this order.
Status IbSender::postAgain() {
  for (; again_ < row_; ++again_) {
    const Row& row = at(again_);
    if (row.left == 0) continue;
    // What comes behind something that was refused would be taken for it.
    if (failsSomewhere()) return {};
    if (!hasRoomFor(again_, row.chain)) return {};
    TRY(postRow(again_));
  }
  return {};
}

/// What is under way may have come before the peer left: its completion says so. Nothing else will go.
bool IbSender::needsPeer(bool failed) const {
  return failed || std::all_of(rows_.begin(), rows_.end(), [](const Row& row) { return row.left == 0; });
}

}  // namespace tutti::net::ib

#include "transport/net/ib/sender.h"

#include <arpa/inet.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "base/log.h"
#include "transport/net/ib/nic/nic.h"
#include "transport/net/ib/nic/port.h"

namespace tutti::net::ib {

IbSender::IbSender(std::unique_ptr<IbLink> link) : IbEnd(std::move(link)) {
  adaptive_ = link_->pairs->remote().adaptive != 0 && link_->pairs->describe().adaptive != 0;
}

std::uint32_t IbSender::granted() const {
  Grant* const row = grants();
  const std::uint64_t index = row_ + 1;
  // The NIC writes ascending, the index last.
  if (std::atomic_ref(row[0].index).load(std::memory_order_acquire) != index) return 0;
  const std::uint32_t count = std::min<std::uint32_t>(row[0].count, kMostRowMessages);
  for (std::uint32_t i = 1; i < count; ++i) {
    if (std::atomic_ref(row[i].index).load(std::memory_order_acquire) != index) return 0;
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

bool IbSender::hasRoomFor(std::uint32_t chain) const {
  for (std::size_t k = 0; k < pairsInUse(); ++k) {
    if (!(*link_->pairs)[pairOf(row_, k)].hasRoomToSend(chain)) return false;
  }
  return rows_[row_ % kIbRows].left == 0;
}

Result<IbRequest*> IbSender::isend(const plugin::NetBuffer& message) {
  TRY(usable());
  TRY(checkLength(message));
  const std::uint32_t count = granted();
  if (count == 0) {
    TRY(idle());
    return nullptr;
  }
  Grant* const row = grants();
  Row& sent = rows_[row_ % kIbRows];
  const std::uint32_t chain = chainOf(message, count);
  if (matched_ == 0 && !hasRoomFor(chain)) return nullptr;
  if (matched_ == 0) sent = {.count = count};
  for (std::uint32_t i = 0; i < count; ++i) {
    if (sent.requests[i] != nullptr || row[i].tag != message.tag) continue;
    TRY(checkFits(row[i], message));
    IbRequest* const request = takeRequest();
    if (request == nullptr) return nullptr;
    request->left = static_cast<std::uint32_t>(pairsInUse());
    request->row = row_;
    request->bytes[0] = static_cast<std::uint32_t>(message.bytes);
    sent.requests[i] = request;
    sent.chain = chain;
    messages_[i] = message;
    if (++matched_ == count) TRY(postRow());
    return request;
  }
  return nullptr;
}

/// On queue pair `pair`, the k-th of the row: the part of each message that it carries, then the announcement.
Status IbSender::postOn(std::size_t pair, std::size_t k) {
  const Row& row = rows_[row_ % kIbRows];
  const auto slot = static_cast<std::uint32_t>(row_ % kIbRows);
  const std::size_t port = link_->pairs->portOf(pair);
  const std::size_t remotePort = link_->pairs->remotePortOf(pair);
  const Grant* const grant = grants();
  std::array<ibv_sge, kMostRowMessages + 1> parts{};
  std::array<ibv_send_wr, kMostRowMessages + 1> chain{};
  for (std::uint32_t i = 0; i < row.count; ++i) {
    const plugin::NetBuffer& message = messages_[i];
    const std::size_t piece = ibPieceBytes(message.bytes, pairsInUse());
    const std::size_t offset = std::min(k * piece, message.bytes);
    const auto bytes = static_cast<std::uint32_t>(std::min(piece, message.bytes - offset));
    if (bytes > 0) {
      const auto* registration = static_cast<const IbRegistration*>(message.registration);
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
  last.imm_data = htonl(static_cast<std::uint32_t>(messages_[0].bytes));
  last.send_flags = IBV_SEND_SIGNALED;
  last.wr_id = idOf(Work::Row, slot);
  for (std::uint32_t i = 0; i + 1 < row.chain; ++i) chain[i].next = &chain[i + 1];
  return post(pair, chain[0], row.chain);
}

Status IbSender::postRow() {
  Row& row = rows_[row_ % kIbRows];
  auto& sizes = reinterpret_cast<SizeRow*>(link_->sizes->data())[row_ % kIbRows];
  for (std::uint32_t i = 0; i < row.count; ++i) sizes.sizes[i] = static_cast<std::uint32_t>(messages_[i].bytes);
  row.left = static_cast<std::uint32_t>(pairsInUse());
  for (std::size_t k = 0; k < pairsInUse(); ++k) TRY(postOn(pairOf(row_, k), k));
  ++row_;
  matched_ = 0;
  return {};
}

void IbSender::completed(std::size_t pair, const ibv_wc& completion) {
  Row& row = rows_[numberOf(completion.wr_id)];
  (*link_->pairs)[pair].completed(row.chain);
  --row.left;
  for (std::uint32_t i = 0; i < row.count; ++i) --row.requests[i]->left;
}

/// What is under way may have come before the peer left: its completion says so. Nothing else will go.
bool IbSender::needsPeer(bool failed) const {
  return failed || std::all_of(rows_.begin(), rows_.end(), [](const Row& row) { return row.left == 0; });
}

}  // namespace tutti::net::ib

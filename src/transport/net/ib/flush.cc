#include "transport/net/ib/flush.h"

#include <algorithm>
#include <array>

#include "base/log.h"
#include "transport/net/ib/nic/failure_text.h"
#include "transport/net/ib/nic/nic.h"
#include "transport/net/ib/nic/port.h"
#include "transport/net/ib/queue_pairs.h"

namespace tutti::net::ib {

namespace {

constexpr std::size_t kBytes = 4096;

}  // namespace

FlushPairs::FlushPairs() = default;
FlushPairs::~FlushPairs() = default;

Result<std::unique_ptr<FlushPairs>> FlushPairs::open(const std::vector<const IbPort*>& ports,
                                                     const IbOptions& options) {
  std::unique_ptr<FlushPairs> made(new FlushPairs());
  ASSIGN(made->into_, EndMemory::create(ports, kBytes));
  for (const IbPort* port : ports) {
    Own own;
    ASSIGN(own.pair, QueuePairs::create({port}, {.count = 1, .sends = kReads, .receives = 1}, options));
    const SideBlock self = own.pair->describe();
    ASSIGN(const bool over, own.pair->connect(self));
    if (!over) return fail(ncclSystemError, "NET/IB : {} cannot reach itself to flush what it writes", port->text());
    made->own_.push_back(std::move(own));
  }
  return made;
}

Status FlushPairs::begin(std::uint64_t address, const std::array<std::uint32_t, kMostChildren>& keys) {
  for (const Own& own : own_) {
    if ((*own.pair)[0].hasRoomToSend(1)) continue;
    return fail(ncclInternalError, "NET/IB : {} flushes of what {} has written are under way already", kReads,
                own.pair->ports().front()->text());
  }
  for (std::size_t port = 0; port < own_.size(); ++port) {
    QueuePair& pair = (*own_[port].pair)[0];
    ibv_sge part{.addr = into_->address(), .length = 1, .lkey = into_->localKey(port)};
    ibv_send_wr read{};
    read.sg_list = &part;
    read.num_sge = 1;
    read.opcode = IBV_WR_RDMA_READ;
    read.send_flags = IBV_SEND_SIGNALED;
    read.wr.rdma.remote_addr = address;
    read.wr.rdma.rkey = keys[port];
    ibv_send_wr* refused = nullptr;
    if (const int error = ibv_post_send(pair.get(), &read, &refused); error != 0) {
      return fail(ncclSystemError, "NET/IB : Call to ibv_post_send failed with error {}, to flush what {} has written",
                  errnoText(error), pair.port().text());
    }
    pair.sent(1);
  }
  ++begun_;
  return {};
}

Result<std::uint64_t> FlushPairs::finished() {
  std::uint64_t least = begun_;
  for (Own& own : own_) {
    std::array<ibv_wc, 4> room;
    for (const ibv_wc& completion : own.pair->poll(0, room)) {
      if (completion.status != IBV_WC_SUCCESS) {
        return fail(ncclSystemError,
                    "NET/IB : A flush of what {} has written failed with status={}({}) vendor_err={}.{}",
                    own.pair->ports().front()->text(), statusName(completion.status),
                    static_cast<int>(completion.status), completion.vendor_err, statusRemedy(completion.status));
      }
      (*own.pair)[0].completed(1);
      ++own.finished;
    }
    least = std::min(least, own.finished);
  }
  return least;
}

}  // namespace tutti::net::ib

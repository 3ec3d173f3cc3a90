#include "transport/net/ib/flush.h"

#include <fmt/core.h>

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

FlushPairs::FlushPairs(const std::vector<const IbPort*>& ports, const IbOptions& options)
    : ports_(ports), options_(options), own_(ports.size()) {}
FlushPairs::~FlushPairs() = default;

Status FlushPairs::openOne(std::size_t port) {
  Own own{.finished = begun_};
  ASSIGN(own.pair, QueuePairs::create({ports_[port]}, {.count = 1, .sends = kReads, .receives = 1}, options_));
  const SideBlock self = own.pair->describe();
  ASSIGN(const bool over, own.pair->connect(self));
  if (!over) {
    return fail(ncclSystemError, "NET/IB : {} cannot reach itself to flush what it writes", ports_[port]->text());
  }
  own_[port] = std::move(own);
  return {};
}

Result<std::unique_ptr<FlushPairs>> FlushPairs::open(const std::vector<const IbPort*>& ports, const IbOptions& options,
                                                     const std::bitset<kMostChildren>& used) {
  std::unique_ptr<FlushPairs> made(new FlushPairs(ports, options));
  ASSIGN(made->into_, EndMemory::create(ports, kBytes));
  TRY(made->use(used));
  return made;
}

Status FlushPairs::failedWith(Own& own, const std::string& why) const {
  own.failed = true;
  return failuresExpected_ ? Status() : fail(ncclSystemError, "NET/IB : {}: {}", options_.who, why);
}

std::bitset<kMostChildren> FlushPairs::failedPorts() const {
  std::bitset<kMostChildren> failed;
  for (std::size_t port = 0; port < own_.size(); ++port) failed.set(port, own_[port].failed);
  return failed;
}

Status FlushPairs::use(const std::bitset<kMostChildren>& ports) {
  for (std::size_t port = 0; port < own_.size(); ++port) {
    const bool stays = ports[port] && own_[port].pair != nullptr && !own_[port].failed;
    if (stays) continue;
    own_[port] = {.finished = begun_};
    if (!ports[port]) continue;
    const Status opened = openOne(port);
    if (!opened.ok() && !failuresExpected_) return opened;
    own_[port].failed = !opened.ok();
  }
  return {};
}

Status FlushPairs::begin(std::uint64_t address, const std::array<std::uint32_t, kMostChildren>& keys) {
  for (const Own& own : own_) {
    if (own.pair == nullptr || (*own.pair)[0].hasRoomToSend(1)) continue;
    return fail(
        ncclInternalError,
        "NET/IB : {}: there is no room for another flush of what {} has written; open: {} flushes, which have to "
        "be tested first",
        options_.who, own.pair->ports().front()->text(), kReads);
  }
  for (std::size_t port = 0; port < own_.size(); ++port) {
    if (own_[port].pair == nullptr) continue;
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
      TRY(failedWith(own_[port],
                     fmt::format("Call to ibv_post_send failed with error {}, to flush what {} has written.{}",
                                 errnoText(error), pair.port().text(), postRemedy(error))));
      continue;
    }
    pair.sent(1);
  }
  ++begun_;
  return {};
}

Result<std::uint64_t> FlushPairs::finished() {
  std::uint64_t least = begun_;
  for (Own& own : own_) {
    if (own.pair == nullptr) {
      if (own.failed) least = std::min(least, own.finished);
      continue;
    }
    std::array<ibv_wc, 4> room;
    for (const ibv_wc& completion : own.pair->poll(0, room)) {
      (*own.pair)[0].completed(1);
      if (completion.status == IBV_WC_SUCCESS) {
        ++own.finished;
        continue;
      }
      TRY(failedWith(own, fmt::format("A flush of what {} has written failed with status={}({}) vendor_err={}.{}",
                                      own.pair->ports().front()->text(), statusName(completion.status),
                                      static_cast<int>(completion.status), completion.vendor_err,
                                      statusRemedy(completion.status))));
    }
    least = std::min(least, own.finished);
  }
  return least;
}

}  // namespace tutti::net::ib

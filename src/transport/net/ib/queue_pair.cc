#include "transport/net/ib/queue_pair.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "transport/net/ib/nic/health.h"
#include "transport/net/ib/nic/nic.h"
#include "transport/net/ib/nic/options.h"
#include "transport/net/ib/nic/port.h"
#include "transport/net/ib/nic/registrations.h"

namespace tutti::net::ib {

namespace {

/// A receiver that has posted nothing is asked again after 0.64 ms, without end: a receive is posted before its message
/// is asked for.
constexpr std::uint8_t kReceiverNotReadyTimer = 12;
constexpr std::uint8_t kReceiverNotReadyRetries = 7;
constexpr std::uint8_t kHopLimit = 255;

const char* stateName(ibv_qp_state state) {
  switch (state) {
    case IBV_QPS_INIT:
      return "INIT";
    case IBV_QPS_RTR:
      return "RTR";
    case IBV_QPS_RTS:
      return "RTS";
    case IBV_QPS_ERR:
      return "ERR";
    default:
      return "RESET";
  }
}

/// Whether two ports of InfiniBand are in different subnets.
bool crossesSubnets(const PortAddress& a, const PortAddress& b) {
  constexpr std::size_t kPrefix = 8;
  return !std::equal(a.gid.begin(), a.gid.begin() + kPrefix, b.gid.begin());
}

const char* modifyRemedy(int error) {
  if (error == ETIMEDOUT) {
    return ". The two NICs perhaps cannot reach each other: where each rail has a network of its own, "
           "NCCL_CROSS_NIC=0; "
           "between NICs of one host, NCCL_NET_DISABLE_INTRA=1";
  }
  if (error == EINVAL) return ". Leave NCCL_IB_GID_INDEX at -1, and look whether both GIDs are of the same kind";
  return "";
}

}  // namespace

std::string PortAddress::text() const {
  return fmt::format("{}:{} (GID {} {}{})", nic.data(), number, gidIndex, gidText(gid),
                     ethernet != 0 ? "" : fmt::format(", LID {}", lid));
}

ibv_qp_attr readyToReceive(const QueuePairPath& path, int trafficClass) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = static_cast<ibv_mtu>(std::min(path.local.mtu, path.remote.mtu));
  attributes.dest_qp_num = path.remoteNumber;
  attributes.rq_psn = path.firstPacket;
  attributes.max_dest_rd_atomic = 1;
  attributes.min_rnr_timer = kReceiverNotReadyTimer;
  ibv_ah_attr& address = attributes.ah_attr;
  const bool ethernet = path.local.ethernet != 0;
  address.is_global = ethernet || crossesSubnets(path.local, path.remote) || path.local.needsGid != 0 ? 1 : 0;
  if (address.is_global != 0) {
    std::memcpy(address.grh.dgid.raw, path.remote.gid.data(), path.remote.gid.size());
    address.grh.sgid_index = static_cast<std::uint8_t>(path.local.gidIndex);
    address.grh.hop_limit = kHopLimit;
    address.grh.traffic_class = static_cast<std::uint8_t>(trafficClass);
  }
  if (!ethernet) address.dlid = path.remote.lid;
  address.sl = static_cast<std::uint8_t>(path.serviceLevel);
  address.port_num = path.local.number;
  return attributes;
}

QueuePair::QueuePair(const IbPort& port, ibv_qp* qp, const QueuePairShape& shape, const IbOptions& options)
    : port_(port), qp_(qp), shape_(shape), options_(options) {}

QueuePair::~QueuePair() {
  const std::uint32_t number = qp_->qp_num;
  breakUp();
  port_.nic->verbs().destroy_qp(qp_);
  port_.nic->health().forget(number);
}

Result<std::unique_ptr<QueuePair>> QueuePair::create(const IbPort& port, const QueuePairShape& shape,
                                                     const IbOptions& options) {
  Nic& nic = *port.nic;
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = shape.completions;
  init.qp_type = IBV_QPT_RC;
  init.cap.max_send_wr = shape.sends;
  init.cap.max_recv_wr = shape.receives;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  init.cap.max_inline_data = shape.inlineBytes;
  errno = 0;
  ibv_qp* const qp = nic.verbs().create_qp(nic.domain(), &init);
  if (qp == nullptr) {
    const int error = errno;
    return fail(ncclSystemError, "NET/IB : Call to ibv_create_qp on {} failed with error {}{}", port.text(),
                errnoText(error), memlockRemedy(error, 0, nic.registrations().bytes()));
  }
  std::unique_ptr<QueuePair> made(new QueuePair(port, qp, shape, options));
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.pkey_index = static_cast<std::uint16_t>(options.partitionIndex);
  attributes.port_num = static_cast<std::uint8_t>(port.number);
  attributes.qp_access_flags =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  ASSIGN(const bool over,
         made->change(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, nullptr));
  if (over) return made;
  return fail(ncclSystemError, "NET/IB : Call to ibv_modify_qp on {} ran into a timeout, in state RESET", port.text());
}

Status QueuePair::refused(int error, ibv_qp_state wanted, const QueuePairPath* path) const {
  const std::string ends =
      path == nullptr ? std::string() : fmt::format(", from {} to {}", path->local.text(), path->remote.text());
  return fail(ncclSystemError,
              "NET/IB : Call to ibv_modify_qp failed with {} {}, on dev {}, curr state {}, next state {}{}{}", error,
              errnoText(error), port_.text(), stateName(state_), stateName(wanted), ends, modifyRemedy(error));
}

/// False: not yet.
Result<bool> QueuePair::change(ibv_qp_attr attributes, int mask, const QueuePairPath* path) {
  if (SteadyClock::now() < again_) return false;
  const int error = port_.nic->verbs().modify_qp(qp_, &attributes, mask);
  if (error == 0) {
    state_ = attributes.qp_state;
    tries_ = 0;
    return true;
  }
  const bool passes = error == ETIMEDOUT || options_.retriesAll;
  if (!passes || tries_ >= options_.modifyRetries) return refused(error, attributes.qp_state, path);
  ++tries_;
  again_ = SteadyClock::now() + tries_ * options_.modifyStep;
  return false;
}

EceOptions QueuePair::ece() const {
  const Verbs& verbs = port_.nic->verbs();
  ibv_ece said{};
  const bool could = options_.ece && verbs.query_ece != nullptr && verbs.set_ece != nullptr;
  if (!could || verbs.query_ece(qp_, &said) != 0) return {};
  return {.used = 1, .vendor = said.vendor_id, .options = said.options, .mask = said.comp_mask};
}

/// A NIC that has none of it says so, and is connected without.
Status QueuePair::setEce(const QueuePairPath& path) {
  const Verbs& verbs = port_.nic->verbs();
  if (path.ece.used == 0 || !options_.ece || verbs.set_ece == nullptr) return {};
  ibv_ece wanted{.vendor_id = path.ece.vendor, .options = path.ece.options, .comp_mask = path.ece.mask};
  const int error = verbs.set_ece(qp_, &wanted);
  if (error == 0 || error == EOPNOTSUPP || error == ENOTSUP) return {};
  return fail(ncclSystemError,
              "NET/IB : Call to ibv_set_ece failed with error {}, from {} to {}. NCCL_IB_ECE_ENABLE=0 does without",
              errnoText(error), path.local.text(), path.remote.text());
}

Result<bool> QueuePair::connect(const QueuePairPath& path) {
  if (state_ == IBV_QPS_INIT) {
    TRY(setEce(path));
    ASSIGN(const bool over, change(readyToReceive(path, shape_.trafficClass),
                                   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                                   &path));
    if (!over) return false;
  }
  if (connected()) return true;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = static_cast<std::uint8_t>(options_.timeout);
  attributes.retry_cnt = static_cast<std::uint8_t>(options_.retries);
  attributes.rnr_retry = kReceiverNotReadyRetries;
  attributes.sq_psn = path.firstPacket;
  attributes.max_rd_atomic = 1;
  return change(
      attributes,
      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
      &path);
}

void QueuePair::breakUp() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  if (state_ != IBV_QPS_ERR && port_.nic->verbs().modify_qp(qp_, &attributes, IBV_QP_STATE) == 0) state_ = IBV_QPS_ERR;
}

}  // namespace tutti::net::ib

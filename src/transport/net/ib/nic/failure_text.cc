#include "transport/net/ib/nic/failure_text.h"

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace tutti::net::ib {

namespace {

struct StatusText {
  ibv_wc_status status;
  std::string_view name;
  std::string_view remedy;
};

constexpr std::string_view kMemoryRefused =
    " The NIC may not reach the memory: it was freed before it was deregistered, or the PCI switch's access control "
    "(ACS) or the IOMMU keeps the NIC from it. Look at lspci -vvv for ACSCtl, or try NCCL_NET_GDR_LEVEL=LOC";
constexpr std::string_view kPeerRefuses =
    " The peer's NIC refused the access to its memory: the peer has freed it or closed the connection, or its process "
    "has failed. Look at its log";
/// Of services that this library does not use.
constexpr std::string_view kStrange =
    " The NIC speaks of a service that nothing here uses: look at dmesg, and update its firmware and driver";

/// All that verbs have, in their order.
constexpr StatusText kStatuses[] = {
    {IBV_WC_SUCCESS, "IBV_WC_SUCCESS", ""},
    {IBV_WC_LOC_LEN_ERR, "IBV_WC_LOC_LEN_ERR",
     " A message was longer than this NIC takes, or than its receive: a fault of this library. Report this line"},
    {IBV_WC_LOC_QP_OP_ERR, "IBV_WC_LOC_QP_OP_ERR",
     " This NIC found the work, or its queue pair, inconsistent, though its driver had taken it: look at dmesg, and "
     "update its firmware and driver"},
    {IBV_WC_LOC_EEC_OP_ERR, "IBV_WC_LOC_EEC_OP_ERR", kStrange},
    {IBV_WC_LOC_PROT_ERR, "IBV_WC_LOC_PROT_ERR", kMemoryRefused},
    {IBV_WC_WR_FLUSH_ERR, "IBV_WC_WR_FLUSH_ERR",
     " The connection had failed before: look for an earlier message, here or on the peer"},
    {IBV_WC_MW_BIND_ERR, "IBV_WC_MW_BIND_ERR", kStrange},
    {IBV_WC_BAD_RESP_ERR, "IBV_WC_BAD_RESP_ERR",
     " The peer's NIC gave an answer that does not belong to what was asked: the two understand each other badly. "
     "Update the firmware of both; NCCL_IB_ECE_ENABLE=0 does without what only some NICs can"},
    {IBV_WC_LOC_ACCESS_ERR, "IBV_WC_LOC_ACCESS_ERR", kMemoryRefused},
    {IBV_WC_REM_INV_REQ_ERR, "IBV_WC_REM_INV_REQ_ERR", kPeerRefuses},
    {IBV_WC_REM_ACCESS_ERR, "IBV_WC_REM_ACCESS_ERR", kPeerRefuses},
    {IBV_WC_REM_OP_ERR, "IBV_WC_REM_OP_ERR", kPeerRefuses},
    {IBV_WC_RETRY_EXC_ERR, "IBV_WC_RETRY_EXC_ERR",
     " The peer's NIC acknowledged nothing within all retries: its process or host is gone, its port or a link is "
     "down, the two ports cannot reach each other (wrong GID, VLAN or rail), or a switch drops the packets. Try "
     "ibv_rc_pingpong between the two; for a slow fabric raise NCCL_IB_TIMEOUT"},
    {IBV_WC_RNR_RETRY_EXC_ERR, "IBV_WC_RNR_RETRY_EXC_ERR",
     " The peer had posted no receive: a fault of this library. Report this line"},
    {IBV_WC_LOC_RDD_VIOL_ERR, "IBV_WC_LOC_RDD_VIOL_ERR", kStrange},
    {IBV_WC_REM_INV_RD_REQ_ERR, "IBV_WC_REM_INV_RD_REQ_ERR", kStrange},
    {IBV_WC_REM_ABORT_ERR, "IBV_WC_REM_ABORT_ERR",
     " The peer's side has given the operation up: its NIC was reset, or its process is ending. Look at its log, and "
     "at dmesg on its host"},
    {IBV_WC_INV_EECN_ERR, "IBV_WC_INV_EECN_ERR", kStrange},
    {IBV_WC_INV_EEC_STATE_ERR, "IBV_WC_INV_EEC_STATE_ERR", kStrange},
    {IBV_WC_FATAL_ERR, "IBV_WC_FATAL_ERR", " The NIC has failed: look at dmesg"},
    {IBV_WC_RESP_TIMEOUT_ERR, "IBV_WC_RESP_TIMEOUT_ERR",
     " The answer to a request did not come in time: the peer's NIC or a link is overloaded or down. Try "
     "ibv_rc_pingpong between the two; for a slow fabric raise NCCL_IB_TIMEOUT"},
    {IBV_WC_GENERAL_ERR, "IBV_WC_GENERAL_ERR",
     " The NIC gives no other reason than its vendor's code: look at dmesg, and for vendor_err in the NIC's manual"},
    {IBV_WC_TM_ERR, "IBV_WC_TM_ERR", kStrange},
    {IBV_WC_TM_RNDV_INCOMPLETE, "IBV_WC_TM_RNDV_INCOMPLETE", kStrange},
};

/// Of a newer libibverbs.
constexpr StatusText kUnknown{
    {},
    "a status that this library does not know",
    " The header infiniband/verbs.h of the host's libibverbs says what the number means; look at dmesg"};

const StatusText& textOf(ibv_wc_status status) {
  const auto* const found = std::find_if(std::begin(kStatuses), std::end(kStatuses),
                                         [&](const StatusText& one) { return one.status == status; });
  return found != std::end(kStatuses) ? *found : kUnknown;
}

}  // namespace

std::string_view statusName(ibv_wc_status status) {
  return textOf(status).name;
}

std::string_view statusRemedy(ibv_wc_status status) {
  return textOf(status).remedy;
}

std::string_view postRemedy(int error) {
  switch (error) {
    case ENOMEM:
      return " The NIC's queue is full, though it has room for all that this library posts at once: completions were "
             "lost, or its driver has made a shorter queue than was asked for. Look at dmesg, and update firmware and "
             "driver";
    case EINVAL:
      return " The queue pair takes no work in the state that it is in, or not of this kind: an earlier message or "
             "dmesg may say what happened to it";
    case EIO:
    case ENODEV:
      return " The NIC has failed, was reset, or was taken away: look at dmesg";
    case EOPNOTSUPP:
    case ENOSYS:
      return " The NIC or its driver cannot do this: update firmware and driver, or leave the NIC out with "
             "NCCL_IB_HCA";
    default:
      return " It is the driver that refuses: look at dmesg, and update firmware and driver";
  }
}

}  // namespace tutti::net::ib

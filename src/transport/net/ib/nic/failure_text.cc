#include "transport/net/ib/nic/failure_text.h"

namespace tutti::net::ib {

std::string_view statusName(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return "IBV_WC_SUCCESS";
    case IBV_WC_LOC_LEN_ERR:
      return "IBV_WC_LOC_LEN_ERR";
    case IBV_WC_LOC_QP_OP_ERR:
      return "IBV_WC_LOC_QP_OP_ERR";
    case IBV_WC_LOC_EEC_OP_ERR:
      return "IBV_WC_LOC_EEC_OP_ERR";
    case IBV_WC_LOC_PROT_ERR:
      return "IBV_WC_LOC_PROT_ERR";
    case IBV_WC_WR_FLUSH_ERR:
      return "IBV_WC_WR_FLUSH_ERR";
    case IBV_WC_MW_BIND_ERR:
      return "IBV_WC_MW_BIND_ERR";
    case IBV_WC_BAD_RESP_ERR:
      return "IBV_WC_BAD_RESP_ERR";
    case IBV_WC_LOC_ACCESS_ERR:
      return "IBV_WC_LOC_ACCESS_ERR";
    case IBV_WC_REM_INV_REQ_ERR:
      return "IBV_WC_REM_INV_REQ_ERR";
    case IBV_WC_REM_ACCESS_ERR:
      return "IBV_WC_REM_ACCESS_ERR";
    case IBV_WC_REM_OP_ERR:
      return "IBV_WC_REM_OP_ERR";
    case IBV_WC_RETRY_EXC_ERR:
      return "IBV_WC_RETRY_EXC_ERR";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "IBV_WC_RNR_RETRY_EXC_ERR";
    case IBV_WC_LOC_RDD_VIOL_ERR:
      return "IBV_WC_LOC_RDD_VIOL_ERR";
    case IBV_WC_REM_INV_RD_REQ_ERR:
      return "IBV_WC_REM_INV_RD_REQ_ERR";
    case IBV_WC_REM_ABORT_ERR:
      return "IBV_WC_REM_ABORT_ERR";
    case IBV_WC_INV_EECN_ERR:
      return "IBV_WC_INV_EECN_ERR";
    case IBV_WC_INV_EEC_STATE_ERR:
      return "IBV_WC_INV_EEC_STATE_ERR";
    case IBV_WC_FATAL_ERR:
      return "IBV_WC_FATAL_ERR";
    case IBV_WC_RESP_TIMEOUT_ERR:
      return "IBV_WC_RESP_TIMEOUT_ERR";
    case IBV_WC_GENERAL_ERR:
      return "IBV_WC_GENERAL_ERR";
    default:
      return "a status that this library does not know";
  }
}

std::string_view statusRemedy(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
      return " The NIC may not reach the memory: it was freed before it was deregistered, or the PCI switch's access "
             "control (ACS) or the IOMMU keeps the NIC from it. Look at lspci -vvv for ACSCtl, or try "
             "NCCL_NET_GDR_LEVEL=LOC";
    case IBV_WC_WR_FLUSH_ERR:
      return " The connection had failed before: look for an earlier message, here or on the peer";
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_OP_ERR:
      return " The peer's NIC refused the access to its memory: the peer has freed it or closed the connection, or its "
             "process has failed. Look at its log";
    case IBV_WC_RETRY_EXC_ERR:
      return " The peer's NIC acknowledged nothing within all retries: its process or host is gone, its port or a link "
             "is down, the two ports cannot reach each other (wrong GID, VLAN or rail), or a switch drops the packets. "
             "Try ibv_rc_pingpong between the two; for a slow fabric raise NCCL_IB_TIMEOUT";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return " The peer had posted no receive: a fault of this library";
    case IBV_WC_FATAL_ERR:
      return " The NIC has failed: look at dmesg";
    default:
      return "";
  }
}

std::string_view operationName(ibv_wc_opcode operation) {
  switch (operation) {
    case IBV_WC_RDMA_WRITE:
      return "RDMA write";
    case IBV_WC_RDMA_READ:
      return "RDMA read";
    case IBV_WC_RECV_RDMA_WITH_IMM:
      return "receive of an RDMA write";
    case IBV_WC_RECV:
      return "receive";
    case IBV_WC_SEND:
      return "send";
    default:
      return "operation";
  }
}

}  // namespace tutti::net::ib

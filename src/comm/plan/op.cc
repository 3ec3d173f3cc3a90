#include "comm/plan/op.h"

#include <array>

#include "device/kernels/kernel_name.h"

namespace tutti::comm {

std::string_view apiFuncName(ApiFunc func) {
  switch (func) {
    case ApiFunc::AllReduce:
      return "AllReduce";
    case ApiFunc::Reduce:
      return "Reduce";
    case ApiFunc::Broadcast:
      return "Broadcast";
    case ApiFunc::AllGather:
      return "AllGather";
    case ApiFunc::ReduceScatter:
      return "ReduceScatter";
    case ApiFunc::Send:
      return "Send";
    case ApiFunc::Recv:
      return "Recv";
    case ApiFunc::AlltoAll:
      return "AlltoAll";
    case ApiFunc::Gather:
      return "Gather";
    case ApiFunc::Scatter:
      return "Scatter";
  }
  return "?";
}

bool isMessageFunc(ApiFunc func) {
  switch (func) {
    case ApiFunc::AllReduce:
    case ApiFunc::Reduce:
    case ApiFunc::Broadcast:
    case ApiFunc::AllGather:
    case ApiFunc::ReduceScatter:
      return false;
    case ApiFunc::Send:
    case ApiFunc::Recv:
    case ApiFunc::AlltoAll:
    case ApiFunc::Gather:
    case ApiFunc::Scatter:
      return true;
  }
  return false;
}

std::size_t datatypeBytes(ncclDataType_t type) {
  return device::typeBytes(type);
}

std::string_view datatypeName(ncclDataType_t type) {
  constexpr std::array<std::string_view, ncclNumTypes> kNames{
      "ncclInt8",    "ncclUint8",   "ncclInt32",   "ncclUint32",   "ncclInt64",      "ncclUint64",
      "ncclFloat16", "ncclFloat32", "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
  return device::typeBytes(type) == 0 ? "?" : kNames[static_cast<std::size_t>(type)];
}

}  // namespace tutti::comm

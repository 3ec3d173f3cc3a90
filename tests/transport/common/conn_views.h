// What kernels see of an end whose direction is known.
#pragma once

#include <variant>

#include "transport/common/transport.h"

namespace tutti::test {

inline device::SendConn sendConn(const transport::Endpoint& sender) {
  return std::get<device::SendConn>(sender.view());
}
inline device::RecvConn recvConn(const transport::Endpoint& receiver) {
  return std::get<device::RecvConn>(receiver.view());
}

}  // namespace tutti::test

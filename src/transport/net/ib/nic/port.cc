#include "transport/net/ib/nic/port.h"

#include <fmt/core.h>

#include "transport/net/ib/nic/nic.h"

namespace tutti::net::ib {

std::string IbPort::text() const {
  return fmt::format("{}:{}", nic->name(), number);
}

}  // namespace tutti::net::ib

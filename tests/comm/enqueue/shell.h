// A communicator that never came up: enough for whoever only looks at its configuration, its abort and its gate.
#pragma once

#include <memory>

#include "comm/settings/comm_settings.h"
#include "comm/state/communicator.h"

namespace tutti::test {

inline comm::Config configOf(bool blocking) {
  ncclConfig_t user = comm::undefinedConfig();
  user.blocking = blocking ? 1 : 0;
  return comm::parseConfig(&user, comm::undefinedConfig()).value();
}

struct Shell {
  explicit Shell(bool blocking = true)
      : comm(comm::CommIdentity(), configOf(blocking), std::make_shared<const comm::CommSettings>(), {}) {}
  ncclComm comm;
};

}  // namespace tutti::test

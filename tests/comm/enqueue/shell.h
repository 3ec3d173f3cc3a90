// A communicator that never came up: enough for whoever only looks at its configuration, its abort and its gate.
#pragma once

#include "comm/state/communicator.h"
#include "comm/settings/comm_settings.h"

namespace tutti::test {

inline Config configOf(bool blocking) {
  ncclConfig_t user = undefinedConfig();
  user.blocking = blocking ? 1 : 0;
  return parseConfig(&user, undefinedConfig()).value();
}

struct Shell {
  explicit Shell(bool blocking = true) : comm(CommIdentity(), configOf(blocking), Runtime()) {}
  ncclComm comm;
};

}  // namespace tutti::test

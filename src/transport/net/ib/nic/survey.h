// What the network over verbs finds on a host.
#pragma once

#include <string>

#include "transport/net/ib/nic/devices.h"

namespace tutti::net::ib {

/// The library and the NICs, with the reasons for what is not used.
struct IbSurvey {
  std::string whyNot;  ///< not "": verbs are not used at all, and nothing was looked for
  IbSearch found;
};

/// Opens the library and all NICs, which stay open as long as the value holds them. `folder`: /sys/class/infiniband.
/// Errors: ncclInvalidUsage (NCCL_IB_HCA). Any thread.
Result<IbSurvey> surveyIb(const IbOptions& options, const std::string& folder);

}  // namespace tutti::net::ib

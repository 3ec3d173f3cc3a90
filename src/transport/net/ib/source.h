// The built-in network over verbs, for whoever only opens it.
#pragma once

#include <memory>
#include <string>

namespace tutti {
struct Params;
}
namespace tutti::plugin {
class NetSource;
}

namespace tutti::net::ib {

/// Opens it for communicators (net.h). Keeps a copy of `settings`. The NICs are looked for when the first communicator
/// asks, and stay open. `sysfs`: where the system describes verbs devices.
std::unique_ptr<plugin::NetSource> ibNetSource(const Params& settings, std::string sysfs = "/sys/class/infiniband");

}  // namespace tutti::net::ib

// The built-in network over TCP, for whoever only opens it.
#pragma once

#include <memory>

namespace tutti {
struct Params;
}
namespace tutti::plugin {
class Net;
class NetSource;
}  // namespace tutti::plugin

namespace tutti::net::tcp {

/// Opens it for communicators (net.h). Keeps a copy of `settings`.
std::unique_ptr<plugin::NetSource> socketNetSource(const Params& settings);

/// Whether this is it.
bool isSocketNet(const plugin::Net& net);

}  // namespace tutti::net::tcp

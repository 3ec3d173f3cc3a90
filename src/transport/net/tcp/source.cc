#include "transport/net/tcp/source.h"

#include "transport/net/tcp/net.h"

namespace tutti::net::tcp {

std::unique_ptr<plugin::NetSource> socketNetSource(const Params& settings) {
  return std::make_unique<SocketNetSource>(settings);
}

bool isSocketNet(const plugin::Net& net) {
  return dynamic_cast<const SocketNet*>(&net) != nullptr;
}

}  // namespace tutti::net::tcp

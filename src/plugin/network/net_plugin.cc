#include "plugin/network/net_plugin.h"

#include "plugin/network/net_adapter.h"
#include "plugin/version_search.h"

namespace tutti::plugin {

namespace {

template <int V>
struct NetSymbol {
  using Table = typename NetVersion<V>::Net;
  static constexpr const char* kName = NetVersion<V>::kNetSymbol;
};

}  // namespace

Result<std::unique_ptr<Net>> LoadedNet::open(const NetOpening& opening) {
  NetAttempt<Net> result = attempt(opening);
  if (result.net == nullptr) return fail(result.code, "{}", result.why);
  return std::move(result.net);
}

std::unique_ptr<LoadedNet> findNet(const DlLibrary& library, const std::string& path) {
  return newestVersion<NetSymbol, LoadedNetOf, LoadedNet, kNewestNetVersion, kOldestNetVersion>(
      library, path, kNetPlugins, "Loaded net plugin");
}

}  // namespace tutti::plugin

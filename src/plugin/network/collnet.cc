#include "plugin/network/collnet.h"

#include "plugin/network/collnet_adapter.h"
#include "plugin/version_search.h"

namespace tutti::plugin {

namespace {

template <int V>
struct CollNetSymbol {
  using Table = typename NetVersion<V>::CollNet;
  static constexpr const char* kName = NetVersion<V>::kCollSymbol;
};

}  // namespace

std::unique_ptr<LoadedCollNet> findCollNet(const DlLibrary& library, const std::string& path) {
  return newestVersion<CollNetSymbol, LoadedCollNetOf, LoadedCollNet, kNewestNetVersion, kOldestNetVersion>(
      library, path, kNetPlugins, "Loaded collnet plugin");
}

std::size_t collNetTypeBytes(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
    case ncclFloat8e4m3:
    case ncclFloat8e5m2:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    case ncclNumTypes:
      break;
  }
  return 0;
}

}  // namespace tutti::plugin

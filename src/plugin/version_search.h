// Finds the newest version of an interface in a library.
#pragma once

#include <dlfcn.h>

#include <memory>
#include <string>

#include "base/dl.h"
#include "base/log.h"
#include "plugin/net_versions.h"

namespace tutti::plugin {

/// Makes an `Adapter<V>` of the newest version that `library` exports under the name that `Symbol<V>` has; null: it has
/// none. A table without a name or without init() counts as not exported. `what`: "net" or "collnet", for the line that
/// says what was found.
template <template <int> class Symbol, template <int> class Adapter, class Interface, int V = kNewestNetVersion>
std::unique_ptr<Interface> newestVersion(const DlLibrary& library, const std::string& path, const char* what) {
  using Table = typename Symbol<V>::Table;
  ::dlerror();
  if (const auto* table = static_cast<const Table*>(library.symbol(Symbol<V>::kName)); table == nullptr) {
    const char* words = ::dlerror();
    // Every plugin from before lacks the newest one.
    if (V < kNewestNetVersion) {
      info(kInit, "ncclOsDlsym({}) failed: {}", Symbol<V>::kName, words != nullptr ? words : "it is null");
    }
  } else if (table->name == nullptr || table->init == nullptr) {
    info(kInit | kNet, "NET/Plugin: {} of {} has no {}: ignoring it", Symbol<V>::kName, path,
         table->name == nullptr ? "name" : "init");
  } else {
    info(kInit | kNet, "NET/Plugin: Loaded {} plugin {} (v{})", what, table->name, V);
    return std::make_unique<Adapter<V>>(*table, path);
  }
  if constexpr (V > kOldestNetVersion) {
    return newestVersion<Symbol, Adapter, Interface, V - 1>(library, path, what);
  } else {
    return nullptr;
  }
}

}  // namespace tutti::plugin

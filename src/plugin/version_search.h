// Finds the newest version of an interface in a library.
#pragma once

#include <dlfcn.h>

#include <memory>
#include <string>

#include "base/dl.h"
#include "base/log.h"
#include "plugin/kind.h"

namespace tutti::plugin {

/// Makes an `Adapter<V>` of the newest version, from `Newest` down to `Oldest`, that `library` exports under the name
/// that `Symbol<V>` has; null: it has none. A table without a name or without init() counts as not exported. `found`:
/// what the line says before the plugin's name ("Loaded net plugin").
template <template <int> class Symbol, template <int> class Adapter, class Interface, int Newest, int Oldest,
          int V = Newest>
std::unique_ptr<Interface> newestVersion(const DlLibrary& library, const std::string& path, const PluginKind& kind,
                                         const char* found) {
  using Table = typename Symbol<V>::Table;
  ::dlerror();
  if (const auto* table = static_cast<const Table*>(library.symbol(Symbol<V>::kName)); table == nullptr) {
    const char* words = ::dlerror();
    // Every plugin from before lacks the newest one.
    if (V < Newest) {
      info(kInit, "ncclOsDlsym({}) failed: {}", Symbol<V>::kName, words != nullptr ? words : "it is null");
    }
  } else if (table->name == nullptr || table->init == nullptr) {
    info(kInit | kind.subsystem, "{}/Plugin: {} of {} has no {}: ignoring it", kind.label, Symbol<V>::kName, path,
         table->name == nullptr ? "name" : "init");
  } else {
    info(kInit | kind.subsystem, "{}/Plugin: {} {} (v{})", kind.label, found, table->name, V);
    return std::make_unique<Adapter<V>>(*table, path);
  }
  if constexpr (V > Oldest) {
    return newestVersion<Symbol, Adapter, Interface, Newest, Oldest, V - 1>(library, path, kind, found);
  } else {
    return nullptr;
  }
}

}  // namespace tutti::plugin

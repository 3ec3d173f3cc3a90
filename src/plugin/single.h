// Plugins of which a process uses at most one for all communicators: tuners and profilers.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/dl.h"
#include "plugin/kind.h"

namespace tutti::plugin {

/// Where such a plugin's library was found.
struct SingleLibrary {
  DlLibrary library;  ///< invalid: there is none
  std::string path;
  bool ofNet = false;  ///< it is the network's, where the kind's own could not be opened
  std::string why;     ///< there is none; "": none is wanted
};

/// The network's library may be a tuner, a profiler, … as well: says under which name it was opened last; "": none is
/// open. Any thread.
void rememberNetLibrary(const std::string& file);

/// Opens the library of a kind. `value`: of the kind's setting, "" where it is unset; "none", in any case, means that
/// none is wanted. Where the kind's own library cannot be opened, the network's is taken. Any thread.
SingleLibrary openSingleLibrary(const PluginKind& kind, const std::string& value);

/// Says how loading ended: which library was loaded, or is unsupported; a WARN, with the reason, where the user has
/// named one that cannot be used.
void reportSingleLibrary(const PluginKind& kind, const std::string& value, const SingleLibrary& opened, bool supported);

/// Says that a plugin, of that name, is closed.
void reportClosing(const PluginKind& kind, std::string_view name);

/// The plugin of one kind that all communicators of a process share. It is loaded for the first one that takes it, and
/// closed when the last has given it back; what cannot be loaded is not tried again. `Plugin` has name(), and must not
/// use its library after it is destroyed. Any thread.
template <class Plugin>
class SinglePlugin {
 public:
  /// Makes the plugin of a library; null: the library exports none.
  using Finder = std::unique_ptr<Plugin> (*)(const DlLibrary& library, const std::string& path);

  SinglePlugin(const PluginKind& kind, Finder find) : kind_(kind), find_(find) {}

  /// Null: there is none. The plugin stays loaded as long as the pointer, or a copy of it.
  std::shared_ptr<Plugin> take(const std::string& value) {
    const std::lock_guard lock(mutex_);
    if (auto loaded = loaded_.lock()) return {loaded, loaded->plugin.get()};
    if (failed_) return nullptr;
    auto holder = std::make_shared<Holder>(kind_);
    SingleLibrary opened = openSingleLibrary(kind_, value);
    if (opened.library.valid()) holder->plugin = find_(opened.library, opened.path);
    reportSingleLibrary(kind_, value, opened, holder->plugin != nullptr);
    failed_ = holder->plugin == nullptr;
    if (failed_) return nullptr;
    holder->library = std::move(opened.library);
    loaded_ = holder;
    return {holder, holder->plugin.get()};
  }

  /// The one that is loaded now; null: none is.
  std::shared_ptr<Plugin> current() {
    const std::lock_guard lock(mutex_);
    const auto loaded = loaded_.lock();
    if (loaded == nullptr) return nullptr;
    return {loaded, loaded->plugin.get()};
  }

 private:
  /// An open library and its plugin, which is destroyed first.
  struct Holder {
    explicit Holder(const PluginKind& its) : kind(its) {}
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;
    ~Holder() {
      if (plugin == nullptr) return;
      reportClosing(kind, plugin->name());
    }

    const PluginKind kind;
    DlLibrary library;
    std::unique_ptr<Plugin> plugin;
  };

  const PluginKind kind_;
  const Finder find_;
  std::mutex mutex_;
  std::weak_ptr<Holder> loaded_;  // guarded by mutex_
  bool failed_ = false;           // guarded by mutex_
};

}  // namespace tutti::plugin

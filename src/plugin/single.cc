#include "plugin/single.h"

#include <fmt/core.h>

#include "base/log.h"
#include "base/never_destroyed.h"
#include "plugin/discovery.h"

namespace tutti::plugin {

namespace {

struct NetLibrary {
  std::mutex mutex;
  std::string file;  // guarded by mutex
};

NetLibrary& netLibrary() {
  static NeverDestroyed<NetLibrary> library;
  return library.get();
}

std::string netLibraryFile() {
  NetLibrary& net = netLibrary();
  const std::lock_guard lock(net.mutex);
  return net.file;
}

}  // namespace

void rememberNetLibrary(const std::string& file) {
  NetLibrary& net = netLibrary();
  const std::lock_guard lock(net.mutex);
  net.file = file;
}

SingleLibrary openSingleLibrary(const PluginKind& kind, const std::string& value) {
  SingleLibrary found;
  if (equalInAnyCase(value, "none")) return found;
  OpenedPlugin own = openPlugin(kind, value.substr(0, kLongestPluginName));
  found.library = std::move(own.library);
  found.path = std::move(own.path);
  found.why = std::move(own.why);
  if (found.library.valid()) return found;
  const std::string net = netLibraryFile();
  if (net.empty()) return found;
  std::string why;
  found.library = net == kStaticPlugin ? DlLibrary::openProgram(&why) : DlLibrary::open(net, &why);
  if (!found.library.valid()) return found;
  found.ofNet = true;
  found.path = net;
  return found;
}

void reportSingleLibrary(const PluginKind& kind, const std::string& value, const SingleLibrary& opened,
                         bool supported) {
  if (!opened.ofNet && opened.library.valid()) {
    if (supported) {
      info(kInit | kind.subsystem, "Successfully loaded external {} plugin {}", kind.word, opened.path);
    } else {
      info(kInit | kind.subsystem, "External {} plugin {} is unsupported", kind.word, opened.path);
    }
  }
  if (supported || value.empty() || equalInAnyCase(value, "none")) return;
  std::string reason = opened.why;
  if (!opened.ofNet && opened.library.valid()) {
    reason = fmt::format("{} exports no {} table of a version that this library knows", opened.path, kind.word);
  }
  warn("{}/Plugin: {}={} cannot be used: {}. The process goes on without it", kind.label, kind.setting, value, reason);
}

void reportClosing(const PluginKind& kind, std::string_view name) {
  // Tools know these words.
  const bool tuner = kind.subsystem == kTunerPlugins.subsystem;
  info(kDestroy | kind.subsystem, "{}/Plugin: {}", kind.label,
       tuner ? fmt::format("Closing tuner: '{}'", name) : fmt::format("Closing {} plugin {}", kind.word, name));
}

}  // namespace tutti::plugin

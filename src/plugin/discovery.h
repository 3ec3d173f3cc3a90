// From the name of a plugin to its open library.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/dl.h"
#include "plugin/kind.h"

namespace tutti::plugin {

/// Names that fit beside the built-in networks.
inline constexpr std::size_t kMostNetPlugins = 14;
inline constexpr std::size_t kLongestPluginName = 254;
/// The name, in any case, that stands for the running program.
inline constexpr std::string_view kStaticPlugin = "STATIC_PLUGIN";

/// The entries of a list of plugins. None where the whole value is empty or "none", in any case. Empty entries are
/// skipped, blanks belong to names; what is too long or too many is left out with an INFO line.
std::vector<std::string> parsePluginList(std::string_view value);

/// The files that are tried for a name, in order: the name itself, and PREFIX-NAME.so (libnccl-net-NAME.so) unless the
/// name is a path or has the form lib….so. An empty name stands for PREFIX.so.
std::vector<std::string> pluginFileNames(const PluginKind& kind, std::string_view name);

/// An opened library, or why there is none.
struct OpenedPlugin {
  DlLibrary library;
  std::string path;  ///< where the loader found it
  std::string why;
};
/// Opens the first of a name's files that can be opened; STATIC_PLUGIN, in any case, is the running program. Prints
/// INFO lines for what fails.
OpenedPlugin openPlugin(const PluginKind& kind, const std::string& name);

/// Whether two words are equal but for the case of ASCII letters.
bool equalInAnyCase(std::string_view a, std::string_view b);

}  // namespace tutti::plugin

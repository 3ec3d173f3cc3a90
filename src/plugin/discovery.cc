#include "plugin/discovery.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/threads/activity.h"
#include "plugin/plugin_calls.h"

namespace tutti::plugin {

namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// The loader's words for a file that is nowhere, as opposed to one that cannot be used.
bool saysMissing(std::string_view words, std::string_view file) {
  return words.find(file) != std::string_view::npos &&
         words.find("No such file or directory") != std::string_view::npos;
}

void append(std::string& list, std::string_view separator, std::string_view word) {
  if (!list.empty()) list += separator;
  list += word;
}

/// Its constructors run. Meanwhile others can see that this thread is in there (ActivitySlot).
DlLibrary openNoted(const std::string& file, std::string* words) {
  const CallNote note("dlopen", lastingText(file), kNoDevice);
  return DlLibrary::open(file, words);
}

OpenedPlugin openProgram(const PluginKind& kind) {
  OpenedPlugin opened;
  opened.library = DlLibrary::openProgram(&opened.why);
  opened.path = kStaticPlugin;
  if (!opened.library.valid()) info(kInit | kind.subsystem, "{}/Plugin: {}: {}", kind.label, kStaticPlugin, opened.why);
  return opened;
}

}  // namespace

bool equalInAnyCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

std::vector<std::string> parsePluginList(std::string_view value) {
  std::vector<std::string> names;
  if (equalInAnyCase(value, "none")) return names;
  while (!value.empty()) {
    const std::size_t comma = std::min(value.find(','), value.size());
    const std::string_view name = value.substr(0, comma);
    value.remove_prefix(std::min(comma + 1, value.size()));
    if (name.empty()) continue;
    if (name.size() > kLongestPluginName) {
      info(kNet | kEnv, "NCCL_NET_PLUGIN list contains a plugin name {} longer than {} characters, ignoring it.", name,
           kLongestPluginName + 1);
      continue;
    }
    if (names.size() == kMostNetPlugins) {
      info(kNet | kEnv, "NCCL_NET_PLUGIN list contains more than {} plugins, ignoring the rest", kMostNetPlugins);
      break;
    }
    names.emplace_back(name);
  }
  return names;
}

std::vector<std::string> pluginFileNames(const PluginKind& kind, std::string_view name) {
  if (name.empty()) return {std::string(kind.prefix) + ".so"};
  std::vector<std::string> files{std::string(name)};
  const bool path = name.find('/') != std::string_view::npos;
  const bool library = name.starts_with("lib") && name.ends_with(".so");
  if (!path && !library) files.push_back(fmt::format("{}-{}.so", kind.prefix, name));
  return files;
}

OpenedPlugin openPlugin(const PluginKind& kind, const std::string& name) {
  if (equalInAnyCase(name, kStaticPlugin)) return openProgram(kind);
  OpenedPlugin opened;
  std::string missing;
  for (const std::string& file : pluginFileNames(kind, name)) {
    std::string words;
    opened.library = openNoted(file, &words);
    if (opened.library.valid()) {
      const std::string found = opened.library.path();
      opened.path = found.empty() ? file : found;
      opened.why.clear();
      return opened;
    }
    info(kInit, "ncclOsDlopen({}) failed: {}", file, words);
    if (saysMissing(words, file)) {
      append(missing, " ", file);
    } else {
      info(kInit | kind.subsystem, "{}/Plugin: {}: {}", kind.label, file, words);
      append(opened.why, "; ", words);
    }
  }
  if (!missing.empty()) {
    info(kInit | kind.subsystem, "{}/Plugin: Could not find: {}", kind.label, missing);
    append(opened.why, "; ", "not found: " + missing);
  }
  return opened;
}

}  // namespace tutti::plugin

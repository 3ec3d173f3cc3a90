#include "base/environment.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <set>

#include "base/never_destroyed.h"
#include "base/user_file.h"

namespace tutti {

namespace {

constexpr std::size_t kMaxLine = 4096;
constexpr std::size_t kMaxToken = 1023;
/// Of a file; thousands of settings have room in it.
constexpr std::size_t kMaxFile = std::size_t{1} << 20;

std::optional<std::string> find(const Settings& settings, std::string_view name) {
  const auto it = settings.find(name);
  if (it == settings.end()) return std::nullopt;
  return it->second;
}

void addKeys(const Settings& settings, std::set<std::string>& names) {
  for (const auto& [name, value] : settings) names.insert(name);
}

/// Nothing here may log: the log reads its own settings through this.
Settings readSettingsFile(const std::string& path, bool asked, std::vector<std::string>& unusable) {
  const UserFile file = readUserFile(path, kMaxFile);
  if (file.ok()) return parseSettingsFile(file.text);
  if (!asked && file.trouble == FileTrouble::Missing) return {};
  unusable.push_back("The settings file " + path + (asked ? " (NCCL_CONF_FILE)" : "") + " is ignored: " + file.why);
  return {};
}

}  // namespace

std::optional<std::string> MapEnv::get(std::string_view name) const {
  return find(settings_, name);
}

std::vector<std::string> MapEnv::names() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : settings_) names.push_back(name);
  return names;
}

std::optional<std::string> ProcessEnv::get(std::string_view name) const {
  const std::string text(name);
  const char* value = std::getenv(text.c_str());  // who sets variables meanwhile is at fault
  if (value == nullptr) return std::nullopt;
  return value;
}

std::vector<std::string> ProcessEnv::names() const {
  std::set<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    names.emplace(text.substr(0, text.find('=')));
  }
  return {names.begin(), names.end()};
}

LayeredEnv::LayeredEnv(const EnvReader& first, const std::string& systemFile) : first_(first) {
  if (const auto asked = first.get("NCCL_CONF_FILE"); asked && !asked->empty()) {
    user_ = readSettingsFile(*asked, true, unusable_);
  } else if (const auto home = first.get("HOME"); home && !home->empty()) {
    user_ = readSettingsFile(*home + "/.nccl.conf", false, unusable_);
  }
  system_ = readSettingsFile(systemFile, false, unusable_);
  // A file cannot move itself: only the real environment says where the user's file is.
  user_.erase("NCCL_CONF_FILE");
  system_.erase("NCCL_CONF_FILE");
}

std::optional<std::string> LayeredEnv::get(std::string_view name) const {
  if (auto value = first_.get(name)) return value;
  if (auto value = find(user_, name)) return value;
  return find(system_, name);
}

std::vector<std::string> LayeredEnv::names() const {
  const std::vector<std::string> own = first_.names();
  std::set<std::string> names(own.begin(), own.end());
  addKeys(user_, names);
  addKeys(system_, names);
  return {names.begin(), names.end()};
}

void LayeredEnv::passOn() const {
  constexpr int kKeep = 0;
  for (const Settings* file : {&user_, &system_}) {
    for (const auto& [name, value] : *file) ::setenv(name.c_str(), value.c_str(), kKeep);
  }
}

Settings parseSettingsFile(std::string_view text) {
  Settings settings;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, kMaxLine);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t equals = line.find('=');
    if (line.starts_with('#') || equals == std::string_view::npos || equals == 0) continue;
    settings[std::string(line.substr(0, std::min(equals, kMaxToken)))] = line.substr(equals + 1, kMaxToken);
  }
  return settings;
}

const LayeredEnv& processEnvironment() {
  static NeverDestroyed<ProcessEnv> real;
  static NeverDestroyed<LayeredEnv> layered(real.get(), "/etc/nccl.conf");
  return layered.get();
}

void passOnSettingsFiles() {
  static const bool done = [] {
    processEnvironment().passOn();
    return true;
  }();
  static_cast<void>(done);
}

namespace {
constinit std::atomic<const EnvReader*> replacement{nullptr};
}  // namespace

const EnvReader& settingsSource() {
  const EnvReader* source = replacement.load(std::memory_order_acquire);
  return source != nullptr ? *source : processEnvironment();
}

void setSettingsSource(const EnvReader* source) {
  replacement.store(source, std::memory_order_release);
}

}  // namespace tutti

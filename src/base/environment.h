// Where settings come from: the process environment, then the configuration files; or what an env plugin says instead.
// The only callers of getenv and setenv.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// Answers look-ups by variable name. Tests pass a MapEnv.
class EnvReader {
 public:
  virtual ~EnvReader() = default;
  /// The value, possibly empty, or nothing where the name is not set.
  virtual std::optional<std::string> get(std::string_view name) const = 0;
  /// All names that are set, sorted.
  virtual std::vector<std::string> names() const = 0;
};

using Settings = std::map<std::string, std::string, std::less<>>;

/// Settings held in memory.
class MapEnv : public EnvReader {
 public:
  MapEnv() = default;
  explicit MapEnv(Settings settings) : settings_(std::move(settings)) {}
  std::optional<std::string> get(std::string_view name) const override;
  std::vector<std::string> names() const override;

 private:
  Settings settings_;
};

/// The variables of this process, as they are at each look-up.
class ProcessEnv : public EnvReader {
 public:
  std::optional<std::string> get(std::string_view name) const override;
  std::vector<std::string> names() const override;
};

/// A reader in front of the settings of files: the reader wins, then the first file that has the name.
class LayeredEnv : public EnvReader {
 public:
  /// Reads the files that `first` names (NCCL_CONF_FILE, or .nccl.conf in HOME) and `systemFile`, each at most 1 MiB;
  /// files that cannot be used count as empty. `first` is borrowed. Logs nothing.
  LayeredEnv(const EnvReader& first, const std::string& systemFile);
  /// A sentence for each file that cannot be used, with the cause and what to do. A file that is missing is told only
  /// if NCCL_CONF_FILE names it.
  const std::vector<std::string>& unusableFiles() const { return unusable_; }
  std::optional<std::string> get(std::string_view name) const override;
  std::vector<std::string> names() const override;
  /// Puts the settings of the files into the environment of this process, where it has no such name: plugins, other
  /// libraries and child processes find them there. Other threads must not look into the environment meanwhile.
  void passOn() const;

 private:
  const EnvReader& first_;
  Settings user_;
  Settings system_;
  std::vector<std::string> unusable_;
};

/// `NAME=VALUE` lines of a configuration file; docs/env.md has the grammar.
Settings parseSettingsFile(std::string_view text);

/// The environment of this process over ~/.nccl.conf and /etc/nccl.conf. The files are read at the first call.
const LayeredEnv& processEnvironment();
/// Its passOn(), at the first call: what the library does first of all.
void passOnSettingsFiles();

/// Who answers what the library asks for settings: processEnvironment(), or an env plugin in its place. Any thread.
const EnvReader& settingsSource();
/// From now on `source`, which is borrowed for ever, answers; null: the environment again. Any thread.
void setSettingsSource(const EnvReader* source);

}  // namespace tutti

#include "plugin/env_plugin.h"

#include <fmt/core.h>

#include "base/log.h"
#include "base/result_name.h"
#include "base/threads/activity.h"
#include "nccl_env.h"
#include "plugin/plugin_calls.h"
#include "plugin/plugin_log.h"
#include "plugin/version_search.h"

namespace tutti::plugin {

namespace {

template <int V>
struct EnvSymbol;
template <>
struct EnvSymbol<1> {
  using Table = ncclEnv_v1_t;
  static constexpr const char* kName = "ncclEnvPlugin_v1";
};
template <>
struct EnvSymbol<2> {
  using Table = ncclEnv_v2_t;
  static constexpr const char* kName = "ncclEnvPlugin_v2";
};

template <int V>
class LoadedEnvOf final : public LoadedEnv {
  using Table = typename EnvSymbol<V>::Table;

 public:
  LoadedEnvOf(const Table& exported, std::string path)
      : exported_(exported), name_(exported.name), path_(std::move(path)) {}

  std::string_view name() const override { return name_; }
  int version() const override { return V; }
  Status init() override {
    forgetPluginWarning();
    if (const ncclResult_t code = notedInit(); code != ncclSuccess) {
      // The oldest version is given no logger: there would only be words of others.
      const std::string words = V >= 2 ? takePluginWarning() : std::string();
      return fail(errorCode(code), "{}: init failed with {}{}. {}", place(), resultName(code),
                  words.empty() ? ", and the plugin said nothing" : "; it said: " + words, kRemedy);
    }
    table_ = exported_;  // not earlier: a plugin may complete its table in init()
    if (table_.getEnv == nullptr) return fail(ncclInvalidUsage, "{}: its table has no getEnv. {}", place(), kRemedy);
    return {};
  }
  const char* find(const char* setting) override { return table_.getEnv(setting); }
  void finalize() override {
    if (table_.finalize == nullptr) return;
    const ncclResult_t code = table_.finalize();
    if (code != ncclSuccess) warn("{}: finalize failed with {}", place(), resultName(code));
  }

 private:
  static constexpr const char* kRemedy =
      "Nothing replaces an env plugin that was found: NCCL_ENV_PLUGIN=none goes on without it";

  std::string place() const { return fmt::format("Env plugin {} (v{} of {})", name_, V, path_); }
  ncclResult_t notedInit() const {
    const CallNote note("init", lastingText(place()), kNoDevice);
    return callInit();
  }
  ncclResult_t callInit() const {
    if constexpr (V >= 2) return exported_.init(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH, NCCL_SUFFIX, &pluginLog);
    if constexpr (V < 2) return exported_.init(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH, NCCL_SUFFIX);
  }

  const Table& exported_;
  Table table_{};
  const std::string name_;
  const std::string path_;
};

}  // namespace

std::unique_ptr<LoadedEnv> findEnv(const DlLibrary& library, const std::string& path) {
  return newestVersion<EnvSymbol, LoadedEnvOf, LoadedEnv, 2, 1>(library, path, kEnvPlugins, "Using");
}

}  // namespace tutti::plugin

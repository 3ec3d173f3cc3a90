#include "plugin/tuner.h"

#include <fmt/core.h>

#include <utility>

#include "base/log.h"
#include "base/never_destroyed.h"
#include "base/result_name.h"
#include "base/threads/activity.h"
#include "plugin/kind.h"
#include "plugin/plugin_calls.h"
#include "plugin/plugin_log.h"
#include "plugin/tuner_versions.h"
#include "plugin/version_search.h"

namespace tutti::plugin {

namespace {

/// The plugin and the communicator in messages, and the one place where a call's result is looked at.
class TunerCalls {
 public:
  TunerCalls(std::string plugin, std::string who)
      : plugin_(std::move(plugin)), who_(std::move(who)), place_(lastingText(plugin_)) {}

  const std::string& plugin() const { return plugin_; }

  template <class F>
  Status check(const char* call, F&& function) const {
    forgetPluginWarning();
    const ncclResult_t code = noted(call, function);
    if (code == ncclSuccess) [[likely]]
      return {};
    return fail(errorCode(code), "{}", describe(code, call));
  }
  /// Meanwhile others can see that this thread is in there (ActivitySlot).
  template <class F>
  ncclResult_t noted(const char* call, F&& function) const {
    const CallNote note(call, place_, kNoDevice);
    return function();
  }
  /// "tuner X (v5 of /lib/x.so), rank 0 of 2 …: init failed with ncclSystemError; it said: its words".
  std::string describe(ncclResult_t code, const char* call) const {
    const std::string words = takePluginWarning();
    return fmt::format("{}, {}: {} failed with {}{}", plugin_, who_, call, resultName(code),
                       words.empty() ? ", and the tuner said nothing" : fmt::format("; it said: {}", words));
  }

 private:
  std::string plugin_;
  std::string who_;
  const char* place_;  ///< plugin_, for ever
};

/// Version 2 names one combination where the others fill a table; it wins where it can be had at all.
template <class Function>
ncclResult_t askForOne(Function* function, void* context, const TunerQuestion& question, TunerTimes& times,
                       int& nChannels) {
  const auto possible = [&](int algorithm) { return times[algorithm][NCCL_PROTO_SIMPLE] >= 0 ? 1 : 0; };
  const int nvls = possible(NCCL_ALGO_NVLS) | possible(NCCL_ALGO_NVLS_TREE);
  int algorithm = NCCL_ALGO_UNDEF;
  int protocol = NCCL_PROTO_UNDEF;
  const ncclResult_t code = function(context, question.func, question.bytes, possible(NCCL_ALGO_COLLNET_CHAIN), nvls,
                                     question.perPipeline, &algorithm, &protocol, &nChannels);
  const bool known =
      algorithm >= 0 && algorithm < NCCL_NUM_ALGORITHMS && protocol >= 0 && protocol < NCCL_NUM_PROTOCOLS;
  if (code == ncclSuccess && known && times[algorithm][protocol] >= 0) times[algorithm][protocol] = 0;
  return code;
}

/// One version of the interface as a Tuner.
template <int V>
class TunerOf final : public Tuner {
 public:
  using Table = typename TunerVersion<V>::Table;

  TunerOf(const Table& table, TunerCalls calls) : table_(table), calls_(std::move(calls)) {}
  TunerOf(const TunerOf&) = delete;
  ~TunerOf() override {
    if (!begun_ || end() == nullptr) return;
    forgetPluginWarning();
    const ncclResult_t code = calls_.noted(kEnd, [&] { return end()(context_); });
    if (code != ncclSuccess) info(kDestroy | kTuning, "{}", calls_.describe(code, kEnd));
  }

  Status begin(const TunerOpening& opening, ncclTunerConstants_v5_t& constants) {
    TRY(calls_.check("init", [&] {
      if constexpr (V >= 5) {
        ncclNvlDomainInfo_v5_t domains = opening.domains;
        return table_.init(&context_, opening.commId, opening.nRanks, opening.nNodes, pluginLog, &domains, &constants);
      } else {
        return table_.init(opening.nRanks, opening.nNodes, pluginLog, &context_);
      }
    }));
    begun_ = true;
    return {};
  }

  std::string describe() const override { return calls_.plugin(); }

  Status times(const TunerQuestion& question, TunerTimes& times, int& nChannels) override {
    nChannels = 0;
    if (table_.getCollInfo == nullptr) return {};
    return calls_.check("getCollInfo", [&] {
      if constexpr (V == 2) {
        return askForOne(table_.getCollInfo, context_, question, times, nChannels);
      } else {
        // Declared as rows behind pointers, and meant as one piece.
        auto** const rows = reinterpret_cast<float**>(times.data());
        if constexpr (V == 3) {
          return table_.getCollInfo(context_, question.func, question.bytes, question.perPipeline, rows,
                                    NCCL_NUM_ALGORITHMS, NCCL_NUM_PROTOCOLS, &nChannels);
        } else {
          return table_.getCollInfo(context_, question.func, question.bytes, question.perPipeline, rows,
                                    NCCL_NUM_ALGORITHMS, NCCL_NUM_PROTOCOLS, question.registered ? 1 : 0, &nChannels);
        }
      }
    });
  }

  bool cutsChunks() const override {
    if constexpr (V >= 6) {
      return table_.getChunkSize != nullptr;
    } else {
      return false;
    }
  }

  Status chunk(const TunerQuestion& question, int algorithm, int protocol, int nChannels, std::size_t& bytes) override {
    if constexpr (V >= 6) {
      if (table_.getChunkSize == nullptr) return {};
      return calls_.check("getChunkSize", [&] {
        return table_.getChunkSize(context_, question.func, question.bytes, algorithm, protocol, nChannels, &bytes);
      });
    } else {
      return {};
    }
  }

 private:
  static constexpr const char* kEnd = V >= 5 ? "finalize" : "destroy";
  ncclTunerFinalize_v2_fn* end() const {
    if constexpr (V >= 5) {
      return table_.finalize;
    } else {
      return table_.destroy;
    }
  }

  const Table& table_;
  const TunerCalls calls_;
  void* context_ = nullptr;
  bool begun_ = false;
};

template <int V>
class TunerPluginOf final : public TunerPlugin {
 public:
  using Table = typename TunerVersion<V>::Table;

  TunerPluginOf(const Table& table, std::string path) : table_(table), path_(std::move(path)) {}

  const char* name() const override { return table_.name; }
  int version() const override { return V; }
  Result<std::unique_ptr<Tuner>> open(const TunerOpening& opening, ncclTunerConstants_v5_t& constants) override {
    auto tuner = std::make_unique<TunerOf<V>>(
        table_, TunerCalls(fmt::format("tuner {} (v{} of {})", table_.name, V, path_), opening.who));
    TRY(tuner->begin(opening, constants));
    return std::unique_ptr<Tuner>(std::move(tuner));
  }

 private:
  const Table& table_;
  const std::string path_;
};

template <int V>
struct TunerSymbol {
  using Table = typename TunerVersion<V>::Table;
  static constexpr const char* kName = TunerVersion<V>::kSymbol;
};

}  // namespace

std::unique_ptr<TunerPlugin> findTuner(const DlLibrary& library, const std::string& path) {
  return newestVersion<TunerSymbol, TunerPluginOf, TunerPlugin, kNewestTunerVersion, kOldestTunerVersion>(
      library, path, kTunerPlugins, "Using");
}

SinglePlugin<TunerPlugin>& tunerOfProcess() {
  static NeverDestroyed<SinglePlugin<TunerPlugin>> tuner(kTunerPlugins, findTuner);
  return tuner.get();
}

}  // namespace tutti::plugin

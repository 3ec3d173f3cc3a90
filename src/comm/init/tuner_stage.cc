#include "comm/init/tuner_stage.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <memory>
#include <utility>

#include "base/log.h"
#include "comm/agreement/wishes.h"
#include "comm/launch/device_pool.h"
#include "comm/plan/plan_context.h"
#include "comm/state/communicator.h"
#include "comm/tuning/advice.h"
#include "comm/tuning/constants.h"
#include "plugin/tuner.h"
#include "topo/machine/rank_layout.h"

namespace tutti::comm {

namespace {

using topo::costs::Constants;

// Both are doubles in the same order.
static_assert(sizeof(Constants) == sizeof(ncclTunerConstants_v5_t));
static_assert(offsetof(Constants, hop) == offsetof(ncclTunerConstants_v5_t, hwLatencies));
static_assert(offsetof(Constants, llMost) == offsetof(ncclTunerConstants_v5_t, llMaxBws));
static_assert(offsetof(Constants, ringLl128PerChannel) == offsetof(ncclTunerConstants_v5_t, perChMaxRingLL128Bws));
static_assert(offsetof(Constants, treeLl128PerChannel) == offsetof(ncclTunerConstants_v5_t, perChMaxTreeLL128Bws));
static_assert(offsetof(Constants, treePerChannel) == offsetof(ncclTunerConstants_v5_t, perChMaxTreeBws));
static_assert(offsetof(Constants, nvlsTreePerChannel) == offsetof(ncclTunerConstants_v5_t, perChMaxNVLSTreeBws));

static_assert(static_cast<int>(device::Func::AllReduce) == ncclFuncAllReduce &&
              static_cast<int>(device::Func::Broadcast) == ncclFuncBroadcast);
static_assert(sizeof(AdvisedTimes) == sizeof(plugin::TunerTimes));

plugin::TunerQuestion questionOf(const Request& request, unsigned perPipeline) {
  return {.func = static_cast<ncclFunc_t>(request.func),
          .bytes = request.bytes,
          .perPipeline = static_cast<int>(perPipeline),
          .registered = request.registered};
}

/// The plugin keeps its library as long as this is asked.
class CommTuner final : public TunerAdvice {
 public:
  CommTuner(std::shared_ptr<plugin::TunerPlugin> library, std::unique_ptr<plugin::Tuner> tuner, bool speaks)
      : library_(std::move(library)), tuner_(std::move(tuner)), speaks_(speaks) {}

  std::string name() const override { return tuner_->describe(); }

  Result<unsigned> times(const Request& request, unsigned perPipeline, AdvisedTimes& times) override {
    plugin::TunerTimes wanted;
    std::copy(times.begin(), times.end(), wanted.begin());
    int nChannels = 0;
    perPipeline_ = perPipeline;
    TRY(tuner_->times(questionOf(request, perPipeline), wanted, nChannels));
    if (speaks_ && detail::logEnabled(LogLevel::Info, kTuning)) {
      info(kTuning, "{}", adviceText(request, library_->name(), times, wanted, nChannels));
    }
    times = wanted;
    return static_cast<unsigned>(std::max(nChannels, 0));
  }

  bool cutsChunks() const override { return tuner_->cutsChunks(); }
  Result<std::size_t> chunk(const Request& request, const Choice& choice) override {
    std::size_t bytes = choice.chunkBytes;
    TRY(tuner_->chunk(questionOf(request, perPipeline_), static_cast<int>(choice.algorithm),
                      static_cast<int>(choice.protocol), static_cast<int>(choice.nChannels), bytes));
    return bytes;
  }

 private:
  const std::shared_ptr<plugin::TunerPlugin> library_;
  const std::unique_ptr<plugin::Tuner> tuner_;  // ends before the library may be closed
  const bool speaks_;
  unsigned perPipeline_ = 1;
};

/// NVLink joins the GPUs of a node at most.
ncclNvlDomainInfo_v5_t domainsOf(const topo::RankLayout& layout) {
  ncclNvlDomainInfo_v5_t domains{
      .nNvlDomains = layout.nNodes(), .minRanksPerNvlDomain = layout.nRanks(), .maxRanksPerNvlDomain = 0};
  for (int node = 0; node < layout.nNodes(); ++node) {
    const auto ranks = static_cast<int>(layout.ranksOnNode(node).size());
    domains.minRanksPerNvlDomain = std::min(domains.minRanksPerNvlDomain, ranks);
    domains.maxRanksPerNvlDomain = std::max(domains.maxRanksPerNvlDomain, ranks);
  }
  return domains;
}

}  // namespace

Result<std::string> beginTuner(ncclComm& comm, const std::string& plugin) {
  const std::shared_ptr<plugin::TunerPlugin> library = plugin::tunerOfProcess().take(plugin);
  if (library == nullptr) return std::string();
  PlanContext& planning = *comm.parts.planning;
  const topo::RankLayout& layout = *comm.parts.layout;
  const Constants usual = usualConstants(policyFor(comm.parts.device->driver(), *comm.settings).world);
  auto given = std::bit_cast<ncclTunerConstants_v5_t>(usual);
  ASSIGN(std::unique_ptr<plugin::Tuner> tuner, library->open({.who = describeComm(comm),
                                                              .commId = comm.identity.commId,
                                                              .nRanks = static_cast<std::size_t>(layout.nRanks()),
                                                              .nNodes = static_cast<std::size_t>(layout.nNodes()),
                                                              .domains = domainsOf(layout)},
                                                             given));
  const auto wanted = std::bit_cast<Constants>(given);
  if (wanted != usual) planning.tuning.input.constants = wanted;
  planning.tuner = std::make_shared<CommTuner>(library, std::move(tuner), comm.identity.rank == 0);
  return std::string("tuner ") + library->name();
}

}  // namespace tutti::comm

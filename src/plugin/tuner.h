// Tuner plugins of all versions behind one interface.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/dl.h"
#include "base/status.h"
#include "nccl_tuner.h"
#include "plugin/single.h"

namespace tutti::plugin {

/// Microseconds by algorithm and protocol, as plugins number them; -1: not to be had.
using TunerTimes = std::array<std::array<float, NCCL_NUM_PROTOCOLS>, NCCL_NUM_ALGORITHMS>;

/// For whom a tuner is begun.
struct TunerOpening {
  std::string who;  ///< in messages: "rank 3 of 8 on host gpu07, device 3"
  std::uint64_t commId = 0;
  std::size_t nRanks = 1;
  std::size_t nNodes = 1;
  ncclNvlDomainInfo_v5_t domains{};
};

/// One collective as a tuner is told of it.
struct TunerQuestion {
  ncclFunc_t func = ncclFuncAllReduce;
  std::size_t bytes = 0;
  int perPipeline = 1;
  bool registered = false;
};

/// One communicator's use of a tuner, ended with it. One thread at a time. Errors: what the plugin returned, with the
/// plugin, its library, the call, the rank, and its words.
class Tuner {
 public:
  virtual ~Tuner() = default;
  /// "tuner NAME (v5 of /lib/x.so)".
  virtual std::string describe() const = 0;
  /// `times`: in, what is expected; out, what the plugin has made of it. An entry that came as less than 0 may have
  /// been changed by mistake. `nChannels`: out, 0 where it has no wish.
  virtual Status times(const TunerQuestion& question, TunerTimes& times, int& nChannels) = 0;
  /// Whether chunk() may change anything.
  virtual bool cutsChunks() const = 0;
  /// `bytes`: of a chunk; in, as it would be; out, as the plugin wants it.
  virtual Status chunk(const TunerQuestion& question, int algorithm, int protocol, int nChannels,
                       std::size_t& bytes) = 0;
};

/// The tuner of a library. Any thread.
class TunerPlugin {
 public:
  virtual ~TunerPlugin() = default;
  virtual const char* name() const = 0;
  virtual int version() const = 0;
  /// Begins it for a communicator; the plugin must outlive the result. From version 5 on it may change `constants`.
  virtual Result<std::unique_ptr<Tuner>> open(const TunerOpening& opening, ncclTunerConstants_v5_t& constants) = 0;
};

/// The newest tuner interface of a library; null: it has none. `path` stands in messages. Prints what it finds.
std::unique_ptr<TunerPlugin> findTuner(const DlLibrary& library, const std::string& path);

/// The process's.
SinglePlugin<TunerPlugin>& tunerOfProcess();

}  // namespace tutti::plugin

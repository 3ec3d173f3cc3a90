// What the planner knows of a communicator, as plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/plan/message_channels.h"
#include "comm/tuning/tuning.h"
#include "device/policy.h"
#include "device/work.h"

namespace tutti::comm {

class TunerAdvice;

/// Facts about the communicator that the planner needs. Equal on all ranks but for `rank`.
struct PlanContext {
  int rank = 0;
  Tuning tuning;
  MessageLimits messages;
  std::vector<int> nodes;              ///< number of each rank's node; empty: all are on one
  int mostPerGroup = 8;                ///< ranks of a group in the order of messages, see MessageSchedule
  std::shared_ptr<TunerAdvice> tuner;  ///< asked about every collective; null: there is no tuner plugin

  int nRanks() const { return tuning.input.ranks.nRanks; }
  unsigned nChannels() const { return tuning.input.nChannels; }
  const device::Policy& policy() const { return tuning.input.policy; }
  std::uint32_t slotBytesOf(device::ConnKind kind, device::Protocol protocol) const {
    return tuning.input.slotBytes[static_cast<std::size_t>(kind)][static_cast<std::size_t>(protocol)];
  }
};

/// Channels that launches of collectives may use.
unsigned usableChannels(const PlanContext& context);
/// Those that messages may use.
unsigned messageChannelsOf(const PlanContext& context);

}  // namespace tutti::comm

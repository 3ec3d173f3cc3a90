// Where all parts of a communicator are known whole: they are made empty, and taken down, here.
#include "bootstrap/bootstrap.h"
#include "comm/collnet/comm_collnet.h"
#include "comm/connect/channels.h"
#include "comm/diagnosis/stalls.h"
#include "comm/launch/channel_events.h"
#include "comm/launch/launch.h"
#include "comm/network/relays.h"
#include "comm/plan/plan_context.h"
#include "comm/state/abort_word.h"
#include "comm/state/communicator.h"
#include "proxy/group.h"
#include "topo/machine/peer_info.h"
#include "topo/machine/rank_layout.h"
#include "transport/common/transport.h"

namespace tutti::comm {

CommParts::CommParts() : planning(std::make_unique<PlanContext>()) {}
CommParts::CommParts(CommParts&& other) noexcept = default;
CommParts::~CommParts() {
  // Graphs may keep it, but not what it has of the device.
  if (channelEvents) channelEvents->close();
}

void CommParts::stopProgress() {
  progress.reset();
}

void CommParts::wakeProgress() const {
  if (!progress) return;
  progress->hold();
  progress->release();
}

bool CommParts::progressRests() const {
  return !progress || progress->rests();
}

bool CommParts::drivesAlone() const {
  return channels && channels->drivenAlone();
}

void CommParts::leaveCollNet() {
  if (collNet) collNet->close();
}

void CommParts::leaveTuner() {
  if (planning) planning->tuner.reset();
}

const proxy::ProgressTask* CommParts::collNetTask() const {
  return collNet ? collNet->task() : nullptr;
}

}  // namespace tutti::comm

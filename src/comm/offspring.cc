#include "comm/offspring.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/log.h"
#include "comm/making.h"
#include "comm/settings/comm_settings.h"
#include "comm/settings/current_settings.h"
#include "comm/state/call_gate.h"
#include "comm/state/membership.h"
#include "comm/state/residence.h"
#include "comm/state/revocation.h"

namespace tutti::comm {

namespace {

/// Whether both make the same connections, so that a child of one can use those of the other.
bool connectAlike(const CommSettings& a, const CommSettings& b) {
  return a.p2p == b.p2p && a.shm == b.shm && a.kernels == b.kernels && a.netSharedSlots == b.netSharedSlots &&
         a.netSharedComms == b.netSharedComms && a.messages.netChunk == b.messages.netChunk;
}

/// Why a child of these settings cannot use the connections of its parent, for people; empty if it can.
std::string obstacleToSharing(const ncclComm& parent, const CommSettings& settings) {
  if (parent.identity.nRanks == 1) return "it has no connections";
  if (parent.membership->family == nullptr) return "it was made without";
  if (parent.progress.revocation->begun()) return "it was revoked";
  if (parent.abort.raised()) return "it has failed";
  if (parent.residence->state() != Residence::State::Resident) return "it is suspended";
  if (settings.connectAtInit) return "NCCL_RUNTIME_CONNECT=0 connects each at its init";
  return connectAlike(settings, *parent.settings) ? "" : "the environment has changed since it was made";
}

/// What concerns the network is the parent's, where it is not the child's own.
Status adoptNetwork(const ncclComm& parent, Config& chosen) {
  const std::string& name = parent.config.netName;
  if (!chosen.netName.empty() && chosen.netName != name && chosen.netName != parent.membership->network) {
    return fail(ncclInvalidUsage,
                "Comm config netName ({}) does not match the parent ({}), whose connections the child shares: leave it "
                "out, or set splitShare (shrinkShare) to 0 in the configuration of the parent",
                chosen.netName, name.empty() ? parent.membership->network : name);
  }
  chosen.netName = name;
  const int trafficClass = parent.config.values.trafficClass;
  if (chosen.values.trafficClass != trafficClass && chosen.values.trafficClass != NCCL_CONFIG_UNDEF_INT) {
    info(kInit, "Comm config trafficClass {} is ignored: the child shares resources with its parent",
         chosen.values.trafficClass);
  }
  chosen.values.trafficClass = trafficClass;
  return {};
}

Result<std::unique_ptr<Membership>> membershipIn(const ncclComm& parent, const ShareField& field, bool given,
                                                 const CommSettings& settings, Config& chosen) {
  const bool asked = parent.config.values.*field.member != 0;
  if (!asked && given && chosen.values.*field.member != 0) {
    info(kInit,
         "{} is set in the configuration of the child: it decides about that one's children; whether the child "
         "shares with its parent, the parent's configuration says",
         field.name);
  }
  if (!asked || !field.counts) return std::make_unique<Membership>();
  if (const std::string why = obstacleToSharing(parent, settings); !why.empty()) {
    info(kInit, "comm {}: {} is set, but its child has connections of its own: {}", fmt::ptr(&parent), field.name, why);
    return std::make_unique<Membership>();
  }
  TRY(adoptNetwork(parent, chosen));
  return std::make_unique<Membership>(Membership{
      .family = parent.membership->family, .places = {}, .born = true, .mostChannels = parent.membership->channels});
}

}  // namespace

Result<std::shared_ptr<Offspring>> planOffspring(ncclComm& parent, const char* function, Births::Tie tie,
                                                 ncclComm_t* place, const ncclConfig_t* config,
                                                 const ShareField& field) {
  *place = nullptr;
  auto settings = std::make_shared<const CommSettings>(currentCommSettings());
  ASSIGN(Config chosen, configOf(config, &parent.config, *settings));
  ASSIGN(std::unique_ptr<Membership> membership, membershipIn(parent, field, config != nullptr, *settings, chosen));
  return std::make_shared<Offspring>(Offspring{parent, CallGate::Pass(*parent.gate), function, tie, place,
                                               std::move(settings), std::move(chosen), std::move(membership), 0});
}

milliseconds Offspring::reportAfter() const {
  return settings->reportAfter;
}

CommIdentity identityOf(const Offspring& plan, int rank, int nRanks, int color, int key) {
  CommIdentity identity = plan.parent.identity;
  identity.rank = rank;
  identity.nRanks = nRanks;
  identity.commId = 0;
  identity.parentId = plan.parent.identity.commId;
  identity.function = plan.function;
  identity.origin = fmt::format("parent {} childCount {} n {} color {} key {}", fmt::ptr(&plan.parent), plan.number,
                                nRanks, color, key);
  return identity;
}

}  // namespace tutti::comm

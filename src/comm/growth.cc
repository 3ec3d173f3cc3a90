#include "comm/growth.h"

#include <memory>
#include <optional>
#include <utility>

#include "base/hash.h"
#include "base/log.h"
#include "bootstrap/absence_report.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/join_options.h"
#include "bootstrap/loop/invitations.h"
#include "bootstrap/unique_id.h"
#include "comm/library.h"
#include "comm/lifecycle.h"
#include "comm/making.h"
#include "comm/settings/comm_settings.h"
#include "comm/settings/current_settings.h"
#include "comm/settings/version.h"
#include "comm/state/births.h"
#include "comm/state/communicator.h"
#include "comm/state/lost_peer.h"
#include "gpu/context.h"
#include "gpu/driver.h"

namespace tutti::comm {

namespace {

using bootstrap::Invitations;
using bootstrap::Lineage;

Lineage lineageOf(const ncclComm& comm) {
  return {comm.identity.nRanks, comm.parts.bootstrap->commHash()};
}

Result<Lineage> lineageOf(const ncclUniqueId& id) {
  ASSIGN(const bootstrap::UniqueId decoded, bootstrap::decodeUniqueId(id));
  if (decoded.parent.size > 0) return decoded.parent;
  return fail(ncclInvalidArgument,
              "CommGrow : the id was made by ncclGetUniqueId: to grow takes one of ncclCommGetUniqueId");
}

Status checkSize(const Lineage& parent, int nRanks) {
  if (nRanks > parent.size) return {};
  return fail(ncclInvalidArgument, "CommGrow : {} ranks are not more than the {} that there are", nRanks, parent.size);
}

/// The same on all ranks, whether they have the id yet or not.
std::uint64_t nameOf(const Lineage& parent, int nRanks) {
  return hashBytes(std::as_bytes(std::span(&nRanks, 1)), parent.name);
}

/// What a member grows by: the id that it was given, or has made itself, both of which are told to the others where
/// nobody else would; unset: it will be told.
Result<std::optional<ncclUniqueId>> idOfMember(ncclComm& comm, const ncclUniqueId* given) {
  const std::shared_ptr<Invitations> invitations = comm.parts.bootstrap->invitations();
  std::optional<ncclUniqueId> id;
  if (given != nullptr) id = *given;
  if (!id) id = invitations->unusedOfOurs();
  if (!id) return id;
  ASSIGN(const Lineage parent, lineageOf(*id));
  if (parent != lineageOf(comm)) {
    return fail(ncclInvalidArgument,
                "CommGrow : the id was made to grow another communicator, of {} ranks; this one has {}", parent.size,
                comm.identity.nRanks);
  }
  TRY(invitations->use(*id));
  if (invitations->isOurs(*id)) comm.parts.bootstrap->invite(*id);
  return id;
}

/// Waits for the id where there is none yet. Nothing of the parent is needed for it: the application may destroy it.
JoinStep joinWhenInvited(std::optional<ncclUniqueId> id, std::shared_ptr<Invitations> invitations,
                         milliseconds reportAfter) {
  return [id, invitations = std::move(invitations),
          reportAfter](bootstrap::JoinOptions& options) -> Result<std::unique_ptr<bootstrap::Bootstrap>> {
    std::optional<ncclUniqueId> by = id;
    if (!by) {
      const Deadline reportAt = reportAfter > milliseconds(0) ? Deadline::in(reportAfter) : Deadline::never();
      ASSIGN(by, invitations->take(Deadline::in(options.settings.timeout), *options.abort, reportAt));
    }
    return joinByIds({*by})(options);
  };
}

/// One that dies while the others come is told to them by the parent, which they all know each other from; nobody else
/// knows the dead yet. `grown` is the new communicator's.
JoinStep joinUnlessMembersDie(JoinStep join, std::shared_ptr<Births> births, Abort& grown) {
  return [join = std::move(join), births = std::move(births), &grown](bootstrap::JoinOptions& options) {
    const Births::Birth birth = births->begin(grown, Births::Tie::Growth);
    return join(options);
  };
}

Result<Progress> growMember(const GrowRequest& request) {
  ncclComm& comm = *request.comm;
  if (request.rank != -1) {
    return fail(ncclInvalidArgument, "CommGrow : invalid rank {}: rank {} is a member, keeps its number and says -1",
                request.rank, comm.identity.rank);
  }
  const Lineage parent = lineageOf(comm);
  TRY(checkSize(parent, request.nRanks));
  // All members have to come: one of which it is known that it is gone need not be waited for.
  TRY(comm.lostPeer->need());
  auto settings = std::make_shared<const CommSettings>(currentCommSettings());
  ASSIGN(Config config, configOf(request.config, &comm.config, *settings));
  ASSIGN(const std::optional<ncclUniqueId> id, idOfMember(comm, request.id));
  CommIdentity identity = comm.identity;
  identity.nRanks = request.nRanks;
  identity.commId = nameOf(parent, request.nRanks);
  identity.parentId = comm.identity.commId;
  identity.function = "ncclCommGrow";
  identity.origin.clear();
  info(kInit, "ncclCommGrow: existing rank {} creating new communicator with {} total ranks", identity.rank,
       request.nRanks);
  JoinStep join = joinWhenInvited(id, comm.parts.bootstrap->invitations(), settings->reportAfter);
  auto grown = makeComm(std::move(identity), std::move(config), std::move(settings));
  join = joinUnlessMembersDie(std::move(join), comm.births, grown->abort);
  return startInit(std::move(grown), request.newcomm, std::move(join), false);
}

Result<Progress> growByNewRank(const GrowRequest& request) {
  ASSIGN(const Lineage parent, lineageOf(*request.id));
  TRY(checkSize(parent, request.nRanks));
  if (request.rank < parent.size || request.rank >= request.nRanks) {
    return fail(ncclInvalidArgument,
                "CommGrow : invalid rank {}: the communicator has {} ranks and grows to {}, so new ones are {}..{}",
                request.rank, parent.size, request.nRanks, parent.size, request.nRanks - 1);
  }
  ASSIGN(const gpu::Driver* driver, gpu::loadDriver());
  ASSIGN(const int device, gpu::currentDevice(*driver));
  ASSIGN(const gpu::CudaDeviceFacts facts, gpu::readDeviceFacts(*driver, device));
  auto settings = std::make_shared<const CommSettings>(currentCommSettings());
  ASSIGN(Config config, configOf(request.config, nullptr, *settings));
  CommIdentity identity{request.rank,   request.nRanks,
                        device,         facts.nvmlIndex,
                        facts.busId,    nameOf(parent, request.nRanks),
                        "ncclCommGrow", {}};
  info(kInit, "ncclCommGrow: new rank {} creating new communicator with {} total ranks", request.rank, request.nRanks);
  return startInit(makeComm(std::move(identity), std::move(config), std::move(settings)), request.newcomm,
                   joinByIds({*request.id}), false);
}

}  // namespace

Result<ncclUniqueId> makeGrowthId(ncclComm& comm) {
  const CommSettings settings = currentCommSettings();
  if (!settings.bootstrap.commId.empty()) {
    return fail(ncclInvalidUsage,
                "CommGetUniqueId : NCCL_COMM_ID is set ({}): communicators that are made through that address cannot "
                "grow",
                settings.bootstrap.commId);
  }
  bootstrap::AbsenceReport report{{}, settings.reportAfter};
  for (int rank = 0; rank < comm.identity.nRanks; ++rank) {
    report.members.push_back(comm.parts.bootstrap->describe(rank));
  }
  ASSIGN(const ncclUniqueId id, bootstrap::createUniqueId(settings.bootstrap, lineageOf(comm), std::move(report)));
  comm.parts.bootstrap->invitations()->addOurs(id);
  return id;
}

Result<Progress> growComm(const GrowRequest& request) {
  *request.newcomm = nullptr;
  if (request.comm != nullptr) return growMember(request);
  TRY(startLibrary());
  logVersion(false, versionText());
  return growByNewRank(request);
}

}  // namespace tutti::comm

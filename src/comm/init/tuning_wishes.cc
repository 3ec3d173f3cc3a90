#include "comm/init/tuning_wishes.h"

#include <string>

#include "base/log.h"
#include "comm/plan/plan_context.h"
#include "comm/settings/comm_settings.h"
#include "comm/state/communicator.h"
#include "comm/tuning/log.h"

namespace tutti::comm {

Result<TuningWishes> tuningWishes(const ncclComm& comm) {
  TuningWishes wishes{.filter = {}, .thresholds = comm.settings->tuning.thresholds};
  if (comm.identity.nRanks == 1) {
    ASSIGN(wishes.filter, parseTuningFilter("", ""));
    return wishes;
  }
  ASSIGN(wishes.filter, filterFrom(comm.settings->algo, comm.settings->proto, comm.settings->tuning));
  if (comm.identity.rank == 0 && wishes.filter.restricted()) {
    for (const std::string& line : filterMatrix(wishes.filter)) info(kEnv, "{}", line);
  }
  return wishes;
}

void logTuning(const ncclComm& comm) {
  const Tuning& tuning = comm.parts.planning->tuning;
  info(kInit, "{}", thresholdsLine(tuning.input));
  if (comm.identity.rank != 0) return;
  for (const std::string& line : describeTuning(tuning)) info(kTuning, "{}", line);
}

}  // namespace tutti::comm

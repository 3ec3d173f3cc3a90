#include "comm/ending/metrics_service.h"

#include <cerrno>
#include <vector>

#include "base/log.h"
#include "comm/diagnosis/stalls.h"
#include "comm/ending/metrics_text.h"
#include "comm/state/communicator.h"

namespace tutti::comm {

namespace {

/// Whether it has to be looked at what it waits for.
bool mayWait(const ncclComm& comm) {
  const bool busy = comm.progress.kernels != nullptr || comm.progress.connecting.load() != nullptr;
  return busy && comm.parts.stalls != nullptr && !comm.abort.raised();
}

}  // namespace

void MetricsService::open() {
  if (service_.open(kMetricsTopic).ok()) return;
  info(kInit, "tutti-info cannot ask this process for metrics: no local socket ({})", errnoText(errno));
}

void MetricsService::serve(std::span<ncclComm* const> comms, SteadyClock::time_point now) {
  if (service_.asked(now)) {
    bool looks = false;
    for (ncclComm* comm : comms) {
      if (!mayWait(*comm)) continue;
      comm->parts.stalls->watch(now);
      looks = true;
    }
    if (looks && now - service_.since() < kLook) return;
    std::vector<CommMetrics> metrics;
    metrics.reserve(comms.size());
    for (ncclComm* comm : comms) metrics.push_back(metricsOf(*comm, now));
    service_.give(metricsText(metrics));
  }
  service_.send(now);
}

}  // namespace tutti::comm

#include "comm/ending/metrics_service.h"

#include <cerrno>
#include <vector>

#include "base/log.h"
#include "comm/ending/metrics_text.h"

namespace tutti::comm {

void MetricsService::open() {
  if (service_.open(kMetricsTopic).ok()) return;
  info(kInit, "tutti-info cannot ask this process for metrics: no local socket ({})", errnoText(errno));
}

void MetricsService::serve(std::span<ncclComm* const> comms, SteadyClock::time_point now) {
  if (service_.asked(now)) {
    std::vector<CommMetrics> metrics;
    metrics.reserve(comms.size());
    for (ncclComm* comm : comms) metrics.push_back(metricsOf(*comm));
    service_.give(metricsText(metrics));
  }
  service_.send(now);
}

}  // namespace tutti::comm

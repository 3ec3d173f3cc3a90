#include "transport/net/tcp/options.h"

#include <algorithm>

#include "base/settings/params.h"

namespace tutti::net::tcp {

namespace {

/// Cards that give one TCP stream only a part of their bandwidth want several; elsewhere a single stream, moved by the
/// thread that waits for it anyway, had the least latency and lost no bandwidth.
int defaultThreads(SocketVendor vendor) {
  switch (vendor) {
    case SocketVendor::Aws:
      return 2;
    case SocketVendor::Google:
      return 4;
    case SocketVendor::Other:
      break;
  }
  return 0;
}

int defaultSocketsPerThread(SocketVendor vendor) {
  return vendor == SocketVendor::Aws ? 8 : 1;
}

}  // namespace

SocketOptions socketOptions(const Params& params, SocketVendor vendor, bool* reduced) {
  const auto& set = params.sockets;
  SocketOptions options;
  options.threads = static_cast<int>(set.nThreads.value_or(defaultThreads(vendor)));
  int perThread = static_cast<int>(set.socketsPerThread.value_or(defaultSocketsPerThread(vendor)));
  const int groups = std::max(options.threads, 1);
  const bool tooMany = groups * perThread > kMaxSocketStreams;
  if (tooMany) perThread = kMaxSocketStreams / groups;
  if (reduced != nullptr) *reduced = tooMany;
  options.streams = groups * perThread;
  if (options.threads == 0 && options.streams == 1) options.streams = 0;
  options.inlineBytes = static_cast<std::uint32_t>(set.inlineBytes);
  options.minPiece = static_cast<std::uint32_t>(set.minTaskSize);
  options.sendBuffer = static_cast<int>(set.sendBuffer);
  options.receiveBuffer = static_cast<int>(set.receiveBuffer);
  options.retries = static_cast<int>(set.retryCount);
  options.retryStep = milliseconds(set.retrySleepMs);
  // Whoever uses up all tries shall say so. A host that swallows packets is given up within half a minute, and a busy
  // peer may take a while to come to us.
  constexpr milliseconds kBesidesTries{30000};
  constexpr milliseconds kMost = std::chrono::hours(24);
  const double pauses =
      0.5 * options.retries * (options.retries + 1.0) * static_cast<double>(options.retryStep.count());
  options.setup = kBesidesTries + std::min(kMost, milliseconds(static_cast<std::int64_t>(std::min(pauses, 1e9))));
  options.silence = milliseconds(set.peerTimeoutMs);
  return options;
}

}  // namespace tutti::net::tcp

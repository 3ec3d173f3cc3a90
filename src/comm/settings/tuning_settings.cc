#include "comm/settings/tuning_settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <system_error>

#include "base/log.h"
#include "base/settings/params.h"
#include "comm/tuning/filter.h"
#include "device/policy.h"

namespace tutti::comm {

namespace {

/// Threads as a setting asks for them: more than there may be, or no multiple of a warp, gives the most; too few give
/// the fewest. 0: not set.
int threadsFrom(const char* name, std::int64_t value, int fewest) {
  constexpr int kMost = device::kMaxThreads;
  constexpr int kWarp = 32;
  if (value == -2) return 0;
  int threads = static_cast<int>(std::min<std::int64_t>(value, kMost));
  if (value % kWarp != 0) threads = kMost;
  threads = std::max(threads, fewest);
  if (threads != value) info(kEnv, "Invalid value {} for {}, using {}.", value, name, threads);
  return threads;
}

/// Six numbers, whatever stands between them; nothing where it is anything else.
std::optional<ThreadThresholds> thresholdsFrom(std::string_view text) {
  constexpr std::string_view kBetween = " ,;/|";
  std::array<std::int64_t, std::size_t{2} * device::kProtocols> numbers{};
  std::size_t count = 0;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(kBetween), text.size()));
    if (text.empty()) break;
    const std::string_view word = text.substr(0, text.find_first_of(kBetween));
    if (count == numbers.size()) return std::nullopt;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), numbers[count++]);
    if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
    text.remove_prefix(word.size());
  }
  if (count != numbers.size()) return std::nullopt;
  ThreadThresholds thresholds;
  for (std::size_t p = 0; p < device::kProtocols; ++p) {
    thresholds.tree[p] = std::max<std::int64_t>(numbers[p], -1);
    thresholds.ring[p] = std::max<std::int64_t>(numbers[device::kProtocols + p], -1);
  }
  return thresholds;
}

}  // namespace

TuningSettings tuningSettingsFrom(const Params& params) {
  const Params::Tuning& from = params.tuning;
  TuningSettings settings;
  settings.plugin = from.plugin;
  settings.pat = static_cast<int>(from.patEnable);
  settings.nThreads = threadsFrom("NCCL_NTHREADS", from.nThreads, 64);
  settings.ll128Threads = threadsFrom("NCCL_LL128_NTHREADS", from.ll128Threads, 160);
  settings.llMessageBytes = from.p2pLlThreshold.value_or(-1);
  if (from.threadThresholds.empty()) return settings;
  const auto thresholds = thresholdsFrom(from.threadThresholds);
  if (!thresholds) {
    info(kEnv, "Invalid value {} for NCCL_THREAD_THRESHOLDS (six numbers), using default unset.",
         from.threadThresholds);
  }
  settings.thresholds = thresholds.value_or(ThreadThresholds{});
  return settings;
}

device::Policy applySettings(device::Policy policy, const TuningSettings& settings) {
  if (settings.nThreads > 0) {
    policy.collThreads.fill(static_cast<std::uint32_t>(settings.nThreads));
    policy.p2pThreads = (static_cast<std::uint32_t>(settings.nThreads) + 63) / 64 * 64;  // half send, half receive
  }
  if (settings.ll128Threads > 0) {
    constexpr auto kLl128 = static_cast<std::size_t>(device::Protocol::LL128);
    policy.collThreads[kLl128] = static_cast<std::uint32_t>(settings.ll128Threads);
  }
  if (settings.llMessageBytes >= 0) policy.llMessageBytes = static_cast<std::uint64_t>(settings.llMessageBytes);
  return policy;
}

Result<TuningFilter> filterFrom(std::string_view algo, std::string_view proto, const TuningSettings& settings) {
  ASSIGN(TuningFilter filter, parseTuningFilter(algo, proto));
  for (auto& row : filter.algorithms) {
    Permission& pat = row[static_cast<std::size_t>(device::Algorithm::Pat)];
    if (settings.pat == 0) pat = Permission::No;
    if (settings.pat == 1 && pat == Permission::Auto) pat = Permission::Yes;
  }
  return filter;
}

}  // namespace tutti::comm

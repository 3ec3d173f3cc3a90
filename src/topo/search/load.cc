#include "topo/search/load.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "topo/search/lanes.h"

namespace tutti::topo {

namespace {

/// A GPU to itself: what machineBandwidth says of it.
constexpr float kAlone = 5000;

/// Part of a NIC's speed that data can have: frames and headers take the rest.
constexpr double kPayload = 0.96;
/// Inside of one GPU nothing limits; so many times what goes to the network.
constexpr double kFree = 4;

/// Loads by what carries them.
struct SplitLoads {
  std::vector<double> intra;
  std::vector<double> inter;
};

SplitLoads splitLoads(const SearchModel& model, Pattern pattern, const std::vector<DenseChannel>& channels) {
  SplitLoads loads{std::vector<double>(model.capacities().size()), std::vector<double>(model.capacities().size())};
  for (const DenseChannel& channel : channels) {
    visitWays(model, pattern, channel, [&](const SearchWay& way, float share, bool inter) {
      std::vector<double>& of = inter ? loads.inter : loads.intra;
      for (const ResourceUse& use : model.uses(way)) of[static_cast<std::size_t>(use.resource)] += share * use.factor;
    });
  }
  return loads;
}

/// The most that `raised` may be where the other part of the traffic has `fixed` GB/s a channel; infinite without load.
double most(const SearchModel& model, const std::vector<double>& raised, const std::vector<double>& other,
            double fixed) {
  double most = std::numeric_limits<double>::infinity();
  for (std::size_t r = 0; r < raised.size(); ++r) {
    if (raised[r] <= 0) continue;
    most = std::min(most, (static_cast<double>(model.capacities()[r]) - fixed * other[r]) / raised[r]);
  }
  return most;
}

/// What the NICs' ports alone let each channel have.
double nicLimit(const SearchModel& model, const std::vector<double>& inter) {
  double limit = std::numeric_limits<double>::infinity();
  for (std::size_t r = 0; r < inter.size(); ++r) {
    const int link = model.linkOf(static_cast<int>(r));
    const bool isPort = link < 0 || model.machine().link(link).kind == LinkKind::Net;
    if (isPort && inter[r] > 0) limit = std::min(limit, static_cast<double>(model.capacities()[r]) / inter[r]);
  }
  return limit;
}

/// What each of `channels` needs of the network at least if it could have `most`, the remainder being for the inside:
/// six binary digits of the sum, and what a port of 100 Gb/s delivers if there is not much more.
double enough(double most, double channels) {
  constexpr double kPortOf100 = 12;
  if (most >= kPortOf100 && most < kPortOf100 * 1.25) return kPortOf100;
  int exponent = 0;
  const double digits = std::frexp(most * channels, &exponent) * 64;
  return std::ldexp(std::floor(digits + 1e-6), exponent - 6) / channels;
}

/// Down to four digits behind the point, so that adding up does not exceed what is there; below 0.1 to four digits of
/// the number, for a NIC of 1 Mb/s has 0.000125 GB/s, and what there is never becomes nothing.
float rounded(double bandwidth) {
  double scale = 1e4;
  while (bandwidth > 0 && bandwidth * scale < 1e3 && scale < 1e16) scale *= 10;
  return static_cast<float>(std::floor(bandwidth * scale + 0.3) / scale);
}

}  // namespace

Congestion::Congestion(const SearchModel& model, float inside)
    : model_(model),
      inside_(inside),
      loads_(paddedToFour(model.capacities().size()), 0.0f),
      capacities_(loads_.size(), 1.0f) {
  for (std::size_t r = 0; r < model.capacities().size(); ++r) capacities_[r] = std::max(model.capacities()[r], 1e-6f);
}

void Congestion::change(Pattern pattern, const DenseChannel& channel, int sign) {
  visitWays(model_, pattern, channel, [&](const SearchWay& way, float share, bool inter) {
    const float part = static_cast<float>(sign) * share * (inter ? 1.0f : inside_);
    for (const ResourceUse& use : model_.uses(way)) loads_[static_cast<std::size_t>(use.resource)] += part * use.factor;
    length_ += sign * static_cast<int>(way.type);
  });
  channels_ += sign;
  worst_ = -1;
}

float Congestion::worst() const {
  if (worst_ < 0) worst_ = computeWorst();
  return worst_;
}

float Congestion::computeWorst() const {
  Four worst = allFour(0);
  for (std::size_t r = 0; r < loads_.size(); r += kLanesOfFour) {
    const Four load = loadFour(&loads_[r]);
    const Four part = load / loadFour(&capacities_[r]);
    const Four counted = load > 1e-4f ? part : allFour(0);
    worst = counted > worst ? counted : worst;
  }
  return std::max({worst[0], worst[1], worst[2], worst[3]});
}

float Congestion::total() const {
  if (channels_ == 0) return 0;
  const float load = worst();
  return load > 0 ? static_cast<float>(channels_) / load : kAlone;
}

Bandwidths bandwidthsOf(const SearchModel& model, Pattern pattern, const std::vector<DenseChannel>& channels) {
  if (channels.empty()) return {};
  const SplitLoads loads = splitLoads(model, pattern, channels);
  std::vector<double> sum = loads.intra;
  for (std::size_t r = 0; r < sum.size(); ++r) sum[r] += loads.inter[r];
  double both = most(model, sum, loads.intra, 0);
  if (std::isinf(both)) both = kAlone / static_cast<double>(channels.size());
  if (pattern == Pattern::Ring || !model.interNode()) return {rounded(both), rounded(both)};
  // Where the network's last part costs bandwidth inside, it is left.
  const double least =
      std::min(enough(both, static_cast<double>(channels.size())), kPayload * nicLimit(model, loads.inter));
  double intra = most(model, loads.intra, loads.inter, least);
  if (std::isinf(intra)) intra = kFree * both;
  const double inter = most(model, loads.inter, loads.intra, intra);
  return {rounded(intra), rounded(std::isinf(inter) ? both : inter)};
}

LongestWays longestWays(const SearchModel& model, Pattern pattern, const std::vector<DenseChannel>& channels) {
  LongestWays longest;
  for (const DenseChannel& channel : channels) {
    visitWays(model, pattern, channel, [&](const SearchWay& way, float, bool inter) {
      PathType& of = inter ? longest.inter : longest.intra;
      of = std::max(of, way.type);
    });
  }
  return longest;
}

}  // namespace tutti::topo

#include "topo/search_price.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace tutti {

namespace {

/// How prices grow with load: the higher the power, the more the most loaded resource alone counts. Little loads differ
/// a little, so that they spread, too.
float steep(float utilization) {
  const float u = std::min(utilization, 20.0f);
  const float square = u * u;
  return 0.0005f + 0.002f * square + square * square * square * u;
}

/// So that of two ways that cost about the same the shorter is taken, the more so if one needs a CPU.
float taxOn(PathType type) {
  return type > PathType::Pxn ? 0.02f * (static_cast<float>(type) - static_cast<float>(PathType::Pxn))
                              : 2e-5f * static_cast<float>(type);
}

/// What one more channel costs besides its prices, as a number of these.
constexpr std::int64_t kStepsOfCall = 60;

/// Of loading a resource beyond what the channels have to reach, or beyond what is loaded most already.
constexpr float kTooMuch = 20;

/// GB/s, so that nothing is divided by 0 where a link carries nothing or no NIC is reached.
constexpr float kLeastCapacity = 1e-6f;

float least(const std::vector<float>& prices) {
  return *std::min_element(prices.begin(), prices.end());
}

}  // namespace

PriceList::PriceList(const SearchModel& model, const PackTask& task)
    : model_(model), task_(task), prices_(model.capacities().size()), history_(prices_.size(), 1.0f), loads_(prices_) {
  for (int net = 0; net < model.netCount(); ++net) {
    if (isAllowed(net)) nets_.push_back(net);
  }
  for (int in : nets_) {
    for (int out : nets_) {
      if (model.sameRail(in, out)) rails_.emplace_back(in, out);
    }
  }
}

bool PriceList::isAllowed(int net) const {
  return !task_.collectiveOnly || model_.machine().facts<NetFacts>(model_.netNode(net)).collective;
}

void PriceList::forget() {
  std::fill(history_.begin(), history_.end(), 1.0f);
}

void PriceList::set(const Congestion& congestion, int wanted) {
  target_ = std::max(congestion.worst(), static_cast<float>(wanted) / std::max(task_.bound, kLeastCapacity));
  steps_ += static_cast<std::int64_t>(prices_.size()) / 2 + kStepsOfCall;
  for (std::size_t r = 0; r < prices_.size(); ++r) {
    loads_[r] = congestion.load(static_cast<int>(r));
    prices_[r] = priceOf({static_cast<int>(r), 1});
  }
}

float PriceList::priceOf(const ResourceUse& use) const {
  const auto r = static_cast<std::size_t>(use.resource);
  const float capacity = std::max(model_.capacities()[r], kLeastCapacity) * target_;
  const float utilization = (loads_[r] + use.factor) / capacity;
  const float price = use.factor * history_[r] * steep(utilization) / capacity;
  return utilization > 1.0005f ? kTooMuch * price : price;
}

void PriceList::raiseWorst(const Congestion& congestion) {
  const float worst = congestion.worst();
  const auto capacities = model_.capacities();
  for (std::size_t r = 0; r < history_.size(); ++r) {
    if (congestion.load(static_cast<int>(r)) >= 0.999f * worst * capacities[r]) {
      history_[r] = std::min(history_[r] * 1.3f, 1e3f);
    }
  }
}

float PriceList::noise() {
  seed_ ^= seed_ << 13;
  seed_ ^= seed_ >> 7;
  seed_ ^= seed_ << 17;
  return static_cast<float>(seed_ >> 40) / static_cast<float>(1 << 24);
}

float PriceList::priceOf(const SearchWay& way, float part) const {
  if (!way.usable()) return kNoWay;
  ++steps_;
  float sum = taxOn(way.type);
  for (const ResourceUse& use : model_.uses(way)) {
    const ResourceUse taken{use.resource, use.factor * part};
    sum += taken.factor == 1.0f ? prices_[static_cast<std::size_t>(use.resource)] : priceOf(taken);
  }
  return sum;
}

std::vector<float> PriceList::hops(bool twin, bool noisy) {
  const int n = model_.gpuCount();
  std::vector<float> hops(static_cast<std::size_t>(n) * static_cast<std::size_t>(n), kNoWay);
  const auto at = [&](int a, int b) -> float& {
    return hops[static_cast<std::size_t>(a) * static_cast<std::size_t>(n) + static_cast<std::size_t>(b)];
  };
  for (int a = 0; a < n; ++a) {
    for (int b = 0; b < n; ++b) {
      if (a != b) at(a, b) = priceOf(model_.hop(a, b), task_.inside) * (noisy ? 1 + 0.5f * noise() : 1.0f);
    }
  }
  for (int a = 0; twin && a < n; ++a) {
    for (int b = 0; b < a; ++b) at(a, b) = at(b, a) = at(a, b) + at(b, a);
  }
  return hops;
}

std::vector<Doors> PriceList::doors(bool twin, const std::vector<float>& hops, int atMost) const {
  if (!model_.interNode()) return closedDoors(hops);
  std::vector<Doors> doors;
  if (task_.pattern != Pattern::Ring) {
    doors = chainDoors(atMost);
  } else {
    doors = task_.swapNets ? swappedDoors() : railDoors(twin, atMost);
  }
  for (Doors& door : doors) door.least = least(door.start) + least(door.end);
  if (task_.swapNets) {
    std::stable_sort(doors.begin(), doors.end(), [](const Doors& a, const Doors& b) { return a.least < b.least; });
  }
  return doors;
}

std::vector<std::size_t> PriceList::cheapest(const std::vector<float>& leasts, int atMost) const {
  std::vector<std::size_t> order(leasts.size());
  std::iota(order.begin(), order.end(), 0);
  const auto keep = std::min(order.size(), static_cast<std::size_t>(atMost));
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(keep), order.end(),
      [&](std::size_t a, std::size_t b) { return leasts[a] != leasts[b] ? leasts[a] < leasts[b] : a < b; });
  order.resize(keep);
  return order;
}

/// One machine: a cycle begins anywhere, so at the first GPU; a chain's ends cost nothing.
std::vector<Doors> PriceList::closedDoors(const std::vector<float>& hops) const {
  const auto n = static_cast<std::size_t>(model_.gpuCount());
  Doors doors{.start = std::vector<float>(n, 0.0f), .end = std::vector<float>(n, 0.0f)};
  if (task_.pattern == Pattern::Ring && n > 1) {
    std::fill(doors.start.begin() + 1, doors.start.end(), kNoWay);
    for (std::size_t g = 0; g < n; ++g) doors.end[g] = hops[g * n];
  }
  return {doors};
}

std::vector<Doors> PriceList::railDoors(bool twin, int atMost) const {
  const int n = model_.gpuCount();
  const auto start = [&](int net, int g) {
    return priceOf(model_.entry(net, g)) + (twin ? priceOf(model_.exit(g, net)) : 0.0f);
  };
  const auto end = [&](int net, int g) {
    return priceOf(model_.exit(g, net)) + (twin ? priceOf(model_.entry(net, g)) : 0.0f);
  };
  std::vector<float> leastStart(static_cast<std::size_t>(model_.netCount()), kNoWay);
  std::vector<float> leastEnd = leastStart;
  for (int net : nets_) {
    for (int g = 0; g < n; ++g) {
      leastStart[static_cast<std::size_t>(net)] = std::min(leastStart[static_cast<std::size_t>(net)], start(net, g));
      leastEnd[static_cast<std::size_t>(net)] = std::min(leastEnd[static_cast<std::size_t>(net)], end(net, g));
    }
  }
  std::vector<float> leasts;
  for (const auto& [in, out] : rails_) {
    leasts.push_back(leastStart[static_cast<std::size_t>(in)] + leastEnd[static_cast<std::size_t>(out)]);
  }
  std::vector<Doors> all;
  for (std::size_t i : cheapest(leasts, atMost)) {
    Doors doors{.in = rails_[i].first, .out = rails_[i].second};
    for (int g = 0; g < n; ++g) {
      doors.start.push_back(start(doors.in, g));
      doors.end.push_back(end(doors.out, g));
    }
    all.push_back(std::move(doors));
  }
  return all;
}

/// A NIC of each plane. NICs without one go with all planes, so they stand for one only if there are no others.
std::vector<int> PriceList::onePerPlane() const {
  std::map<int, int> found;
  for (const int net : nets_) found.try_emplace(model_.machine().facts<NetFacts>(model_.netNode(net)).plane, net);
  if (found.size() > 1) found.erase(-1);
  std::vector<int> nets;
  for (const auto& [plane, net] : found) nets.push_back(net);
  return nets;
}

/// The reverse of the channel comes in where it leaves: each end takes the NIC that is cheapest there both ways.
std::vector<Doors> PriceList::swappedDoors() const {
  std::vector<Doors> all;
  for (const int first : onePerPlane()) {
    Doors doors;
    for (int g = 0; g < model_.gpuCount(); ++g) {
      float cheapest = kNoWay;
      int chosen = -1;
      for (int net : nets_) {
        if (!model_.samePlane(net, first)) continue;
        const float price = priceOf(model_.entry(net, g)) + priceOf(model_.exit(g, net));
        if (price >= cheapest) continue;
        cheapest = price;
        chosen = net;
      }
      doors.start.push_back(cheapest);
      doors.inOf.push_back(chosen);
    }
    doors.end = doors.start;
    doors.outOf = doors.inOf;
    all.push_back(std::move(doors));
  }
  return all;
}

/// Trees: in and out at the chain's first GPU, or half there and half at the second.
std::vector<Doors> PriceList::chainDoors(int atMost) const {
  const int n = model_.gpuCount();
  const bool two = entersAtTwo(task_.pattern) && n > 1;
  const auto both = [&](int net, int g) {
    return std::min(priceOf(model_.entry(net, g)) + priceOf(model_.exit(g, net)), kNoWay);
  };
  std::vector<float> leasts;
  for (int net : nets_) {
    float least = kNoWay;
    for (int g = 0; g < n; ++g) least = std::min(least, both(net, g));
    leasts.push_back(least);
  }
  std::vector<Doors> all;
  for (std::size_t i : cheapest(leasts, atMost)) {
    Doors doors{.in = nets_[i], .out = nets_[i]};
    for (int g = 0; g < n; ++g) {
      const float price = both(nets_[i], g);
      const float half = price < kNoWay ? price / 2 : kNoWay;
      doors.start.push_back(two ? half : price);
      if (two) doors.second.push_back(half);
    }
    doors.end.assign(static_cast<std::size_t>(n), 0.0f);
    all.push_back(std::move(doors));
  }
  return all;
}

}  // namespace tutti

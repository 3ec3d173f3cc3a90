#include "topo/search_price.h"

#include <algorithm>

namespace tutti {

namespace {

/// How steeply prices grow with load: the higher, the more the most loaded resource alone counts.
float steep(float utilization) {
  const float u = std::min(utilization, 20.0f);
  const float square = u * u;
  return square * square * square * u;
}

float least(const std::vector<float>& prices) {
  return *std::min_element(prices.begin(), prices.end());
}

}  // namespace

PriceList::PriceList(const SearchModel& model, const PackTask& task)
    : model_(model), task_(task), prices_(model.capacities().size()), history_(prices_.size(), 1.0f) {
  for (int net = 0; net < model.netCount(); ++net) {
    if (isAllowed(net)) nets_.push_back(net);
  }
}

bool PriceList::isAllowed(int net) const {
  return !task_.collectiveOnly || model_.machine().facts<NetFacts>(model_.netNode(net)).collective;
}

void PriceList::forget() {
  std::fill(history_.begin(), history_.end(), 1.0f);
}

void PriceList::set(const Congestion& congestion, int wanted) {
  const float target = std::max(congestion.worst(), static_cast<float>(wanted) / task_.bound);
  const auto capacities = model_.capacities();
  for (std::size_t r = 0; r < prices_.size(); ++r) {
    const float capacity = std::max(capacities[r], 1e-6f);
    const float utilization = (congestion.load(static_cast<int>(r)) + 1) / capacity / target;
    prices_[r] = history_[r] * (0.001f + steep(utilization)) / (capacity * target);
  }
  tax_ = 2e-5f;
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

float PriceList::priceOf(const SearchWay& way) const {
  if (!way.usable()) return kNoWay;
  float sum = tax_ * static_cast<float>(way.type);
  for (const ResourceUse& use : model_.uses(way)) sum += use.factor * prices_[static_cast<std::size_t>(use.resource)];
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
      if (a != b) at(a, b) = priceOf(model_.hop(a, b)) * (noisy ? 1 + 0.5f * noise() : 1.0f);
    }
  }
  for (int a = 0; twin && a < n; ++a) {
    for (int b = 0; b < a; ++b) at(a, b) = at(b, a) = at(a, b) + at(b, a);
  }
  return hops;
}

std::vector<Doors> PriceList::doors(bool twin, const std::vector<float>& hops) const {
  std::vector<Doors> doors;
  if (!model_.interNode()) {
    doors = closedDoors(hops);
  } else if (task_.pattern != Pattern::Ring) {
    doors = chainDoors();
  } else {
    doors = task_.swapNets ? swappedDoors() : railDoors(twin);
  }
  for (Doors& door : doors) door.least = least(door.start) + least(door.end);
  std::stable_sort(doors.begin(), doors.end(), [](const Doors& a, const Doors& b) { return a.least < b.least; });
  return doors;
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

std::vector<Doors> PriceList::railDoors(bool twin) const {
  std::vector<Doors> all;
  for (int in : nets_) {
    for (int out : nets_) {
      if (!model_.sameRail(in, out) || (twin && out < in)) continue;
      Doors doors{.in = in, .out = out};
      for (int g = 0; g < model_.gpuCount(); ++g) {
        doors.start.push_back(priceOf(model_.entry(in, g)) + (twin ? priceOf(model_.exit(g, in)) : 0.0f));
        doors.end.push_back(priceOf(model_.exit(g, out)) + (twin ? priceOf(model_.entry(out, g)) : 0.0f));
      }
      all.push_back(std::move(doors));
    }
  }
  return all;
}

/// The reverse of the channel comes in where it leaves: each end takes the NIC that is cheapest there both ways.
std::vector<Doors> PriceList::swappedDoors() const {
  std::vector<Doors> all;
  for (std::size_t first = 0; first < nets_.size(); ++first) {
    const bool seen = std::any_of(nets_.begin(), nets_.begin() + static_cast<std::ptrdiff_t>(first),
                                  [&](int net) { return model_.samePlane(net, nets_[first]); });
    if (seen) continue;
    Doors doors;
    for (int g = 0; g < model_.gpuCount(); ++g) {
      float cheapest = kNoWay;
      int chosen = -1;
      for (int net : nets_) {
        if (!model_.samePlane(net, nets_[first])) continue;
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
std::vector<Doors> PriceList::chainDoors() const {
  const int n = model_.gpuCount();
  const bool two = entersAtTwo(task_.pattern) && n > 1;
  std::vector<Doors> all;
  for (int net : nets_) {
    Doors doors{.in = net, .out = net};
    for (int g = 0; g < n; ++g) {
      const float both = priceOf(model_.entry(net, g)) + priceOf(model_.exit(g, net));
      doors.start.push_back(two ? both / 2 : both);
      if (two) doors.second.push_back(both / 2);
    }
    doors.end.assign(static_cast<std::size_t>(n), 0.0f);
    all.push_back(std::move(doors));
  }
  return all;
}

}  // namespace tutti

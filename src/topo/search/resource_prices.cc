#include "topo/search/resource_prices.h"

#include <algorithm>

#include "topo/search/lanes.h"

namespace tutti::topo {

namespace {

/// Of loading a resource beyond what the channels have to reach, or beyond what is loaded most already.
constexpr float kTooMuch = 20;

/// How prices grow with load: the higher the power, the more the most loaded resource alone counts. Little loads differ
/// a little, so that they spread, too.
Four steep(Four utilization) {
  const Four u = utilization < 20.0f ? utilization : allFour(20);
  const Four square = u * u;
  return 0.0005f + 0.002f * square + square * square * square * u;
}

std::size_t slot(int i) {
  return static_cast<std::size_t>(i);
}

}  // namespace

ResourcePrices::ResourcePrices(const SearchModel& model, float inside) : model_(model), termOf_(model.useCount()) {
  if (resourceCount() == 0) return;
  for (int r = 0; r < resourceCount(); ++r) addTerm(r, 1);
  const int n = model.gpuCount();
  for (int a = 0; a < n; ++a) {
    for (int b = 0; b < n; ++b) {
      if (a != b) enlist(model.hop(a, b), inside);
    }
    enlist(model.toSwitch(a), 1);
    enlist(model.fromSwitch(a), 1);
    for (int net = 0; net < model.netCount(); ++net) {
      enlist(model.entry(net, a), 1);
      enlist(model.exit(a, net), 1);
    }
  }
  while (terms_.factor.size() % kLanesOfFour != 0) addTerm(0, 1);
  terms_.load.resize(terms_.factor.size());
  terms_.price.resize(terms_.factor.size());
}

void ResourcePrices::addTerm(int resource, float factor) {
  terms_.resource.push_back(resource);
  terms_.factor.push_back(factor);
  terms_.capacity.push_back(std::max(model_.capacities()[slot(resource)], kLeastCapacity));
  terms_.history.push_back(1);
  next_.push_back(-1);
}

int ResourcePrices::termOf(int resource, float factor) {
  int term = resource;
  while (terms_.factor[slot(term)] != factor) {
    if (next_[slot(term)] < 0) {
      next_[slot(term)] = static_cast<int>(next_.size());
      addTerm(resource, factor);
    }
    term = next_[slot(term)];
  }
  return term;
}

void ResourcePrices::enlist(const SearchWay& way, float part) {
  auto use = slot(way.begin);
  for (const ResourceUse& taken : model_.uses(way)) termOf_[use++] = termOf(taken.resource, taken.factor * part);
}

void ResourcePrices::forget() {
  std::fill(terms_.history.begin(), terms_.history.end(), 1.0f);
}

void ResourcePrices::set(const Congestion& congestion, float target) {
  const std::size_t count = terms_.factor.size();
  for (std::size_t t = 0; t < count; ++t) terms_.load[t] = congestion.load(terms_.resource[t]);
  for (std::size_t t = 0; t < count; t += kLanesOfFour) {
    const Four factor = loadFour(&terms_.factor[t]);
    const Four room = loadFour(&terms_.capacity[t]) * target;
    const Four utilization = (loadFour(&terms_.load[t]) + factor) / room;
    const Four price = factor * loadFour(&terms_.history[t]) * steep(utilization) / room;
    storeFour(&terms_.price[t], utilization > 1.0005f ? price * kTooMuch : price);
  }
}

void ResourcePrices::raiseWorst(const Congestion& congestion) {
  const float worst = congestion.worst();
  for (std::size_t t = 0; t < terms_.history.size(); ++t) {
    const int r = terms_.resource[t];
    if (congestion.load(r) >= 0.999f * worst * model_.capacities()[slot(r)]) {
      terms_.history[t] = std::min(terms_.history[t] * 1.3f, 1e3f);
    }
  }
}

}  // namespace tutti::topo

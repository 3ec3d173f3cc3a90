#include "topo/search_pack.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace tutti {

namespace {

/// Steps of the router that packing may take, and what one channel more may take of them.
constexpr double kStepsInAll = 1'200'000;
constexpr int kRounds = 24;
constexpr int kRoundsBeforeNoise = 5;

/// Channels of the same bandwidth that links of these capacities can carry in sum, b GB/s each.
int channelsThrough(const std::vector<float>& capacities, float b) {
  int sum = 0;
  for (float capacity : capacities) sum += static_cast<int>(capacity / b + 1e-3f);
  return sum;
}

/// The most bandwidth that `count` channels over these links can each have if none is split.
float bandwidthThrough(const std::vector<float>& capacities, int count) {
  float best = 0;
  for (float capacity : capacities) {
    for (int parts = 1; parts <= count; ++parts) {
      const float b = capacity / static_cast<float>(parts);
      if (b > best && channelsThrough(capacities, b) >= count) best = b;
    }
  }
  return best;
}

/// The links at which a GPU's hops start (or end): what its channels have to share between them.
std::vector<float> doorLinks(const SearchModel& model, int gpu, bool outwards) {
  std::vector<int> resources;
  for (int other = 0; other < model.gpuCount(); ++other) {
    if (other == gpu) continue;
    const auto uses = model.uses(outwards ? model.hop(gpu, other) : model.hop(other, gpu));
    if (!uses.empty()) resources.push_back(outwards ? uses.front().resource : uses.back().resource);
  }
  std::sort(resources.begin(), resources.end());
  resources.erase(std::unique(resources.begin(), resources.end()), resources.end());
  std::vector<float> capacities;
  for (int r : resources) capacities.push_back(model.capacities()[static_cast<std::size_t>(r)]);
  return capacities;
}

/// What `count` undivided channels could carry in sum at best, by the links of each GPU and the NICs.
float potential(const SearchModel& model, const PackTask& task, int count) {
  float least = task.bound / static_cast<float>(count);
  if (task.pattern == Pattern::Ring && !model.interNode()) {
    for (int g = 0; g < model.gpuCount(); ++g) {
      least = std::min(least, bandwidthThrough(doorLinks(model, g, true), count));
      least = std::min(least, bandwidthThrough(doorLinks(model, g, false), count));
    }
  }
  std::vector<float> speeds;
  for (int net = 0; net < model.netCount(); ++net) {
    speeds.push_back(model.machine().facts<NetFacts>(model.netNode(net)).speed);
  }
  if (!speeds.empty()) least = std::min(least, bandwidthThrough(speeds, count));
  return least * static_cast<float>(count);
}

/// Ten binary digits, rounded: numbers of the same step are all equal to each other, on any computer.
int stepOf(float value) {
  constexpr float kSteps = 1024;
  if (!(value > 0)) return std::numeric_limits<int>::min();
  int exponent = 0;
  const float digits = std::frexp(value, &exponent);  // half to one
  return exponent * static_cast<int>(kSteps) / 2 + static_cast<int>(digits * kSteps + 0.5f);
}

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

}  // namespace

std::vector<int> sortedByWorth(std::vector<int> counts, const std::vector<float>& valueOf) {
  const auto step = [&](int count) { return count < std::ssize(valueOf) ? stepOf(valueOf[at(count)]) : stepOf(0); };
  std::stable_sort(counts.begin(), counts.end(), [&](int a, int b) { return step(a) > step(b); });
  return counts;
}

Packer::Packer(const SearchModel& model, const PackTask& task)
    : model_(model), task_(task), prices_(model, task_), congestion_(model, task.inside) {}

Packing Packer::run() {
  const auto allowance = static_cast<std::int64_t>(kStepsInAll * task_.effort);
  budget_ = allowance / 2;
  twin_ = task_.swapNets;
  std::vector<float> greedy;
  const int unit = twin_ ? 2 : 1;
  for (int count = unit; count <= task_.maxChannels; count += unit) {
    const bool exact = task_.minChannels == task_.maxChannels;
    if (!put(count - unit, exact ? task_.maxChannels : count)) return {};
    greedy.resize(at(count) + 1, 0);
    greedy[at(count)] = congestion_.total();
    if (count >= task_.minChannels) consider();
    if (isDone(count)) break;
  }
  const std::vector<int> counts = promisingCounts(greedy);
  for (int count : counts) {
    if (best_.reaches(task_.bound) && std::ssize(best_.channels) <= count) continue;
    for (const bool twin : {false, true}) {
      const bool isPossible = twin ? task_.pattern == Pattern::Ring && count % 2 == 0 : !task_.swapNets;
      if (!isPossible) continue;
      budget_ = steps() + allowance / 4 / static_cast<std::int64_t>(counts.size());
      negotiate(count, twin);
    }
  }
  return best_;
}

/// Numbers of channels worth more work: those whose links could carry most, and those that greed did best with.
std::vector<int> Packer::promisingCounts(const std::vector<float>& greedy) const {
  if (task_.minChannels == task_.maxChannels) return {task_.maxChannels};
  std::vector<int> counts;
  std::vector<float> potentials(at(task_.maxChannels) + 1, 0);
  for (int count = task_.minChannels; count <= task_.maxChannels; ++count) {
    if (task_.swapNets && count % 2 != 0) continue;
    counts.push_back(count);
    potentials[at(count)] = potential(model_, task_, count);
  }
  counts = sortedByWorth(std::move(counts), potentials);
  std::vector<int> chosen(counts.begin(), counts.begin() + std::min<std::ptrdiff_t>(3, std::ssize(counts)));
  counts = sortedByWorth(std::move(counts), greedy);
  for (int i = 0; i < std::min<int>(2, static_cast<int>(counts.size())); ++i) {
    if (std::find(chosen.begin(), chosen.end(), counts[at(i)]) == chosen.end()) chosen.push_back(counts[at(i)]);
  }
  return chosen;
}

void Packer::empty() {
  while (!channels_.empty()) {
    congestion_.remove(task_.pattern, channels_.back());
    channels_.pop_back();
  }
}

std::vector<int> Packer::hint(int index) const {
  if (index > 0 && index <= std::ssize(channels_)) return channels_[at(index - 1)].gpus;
  std::vector<int> order(at(model_.gpuCount()));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// Adds a channel (and its reverse) at a place.
bool Packer::put(int index, int wanted) {
  prices_.set(congestion_, wanted);
  RoutePrices prices{.n = model_.gpuCount(), .hop = prices_.hops(twin_, noisy_)};
  prices.closed = task_.pattern == Pattern::Ring && !model_.interNode();
  RouteResult best;
  const Doors* through = nullptr;
  const std::vector<Doors> doors = prices_.doors(twin_, prices.hop, model_.gpuCount() <= Router::kExactGpus ? 4 : 2);
  for (const Doors& door : doors) {
    if (door.least >= best.price) break;
    prices.start = door.start;
    prices.second = door.second;
    prices.end = door.end;
    RouteResult found = router_.find(prices, hint(index));
    if (found.price >= best.price) continue;
    best = std::move(found);
    through = &door;
  }
  if (through == nullptr) return false;
  place(index, *through, std::move(best.order));
  return true;
}

void Packer::place(int index, const Doors& doors, std::vector<int> order) {
  DenseChannel channel{.gpus = std::move(order), .netIn = doors.in, .netOut = doors.out};
  if (!doors.inOf.empty()) {
    channel.netIn = doors.inOf[at(channel.gpus.front())];
    channel.netOut = doors.outOf[at(channel.gpus.back())];
  }
  congestion_.add(task_.pattern, channel);
  DenseChannel reverse = channel;
  channels_.insert(channels_.begin() + index, std::move(channel));
  if (!twin_) return;
  std::reverse(reverse.gpus.begin(), reverse.gpus.end());
  std::swap(reverse.netIn, reverse.netOut);
  congestion_.add(task_.pattern, reverse);
  channels_.insert(channels_.begin() + index + 1, std::move(reverse));
}

void Packer::takeOut(int index) {
  for (int i = 0; i < (twin_ ? 2 : 1); ++i) {
    congestion_.remove(task_.pattern, channels_[at(index)]);
    channels_.erase(channels_.begin() + index);
  }
}

void Packer::consider() {
  Packing packing{.total = congestion_.total()};
  if (packing.total < best_.worth()) return;
  packing.channels = channels_;
  for (const DenseChannel& channel : channels_) {
    visitWays(model_, task_.pattern, channel,
              [&](const SearchWay& way, float, bool) { packing.length += static_cast<float>(way.type); });
  }
  packing.length /= static_cast<float>(channels_.size());
  if (packing.worth() > best_.worth()) best_ = std::move(packing);
}

bool Packer::fill(int wanted) {
  while (std::ssize(channels_) < wanted) {
    if (!put(static_cast<int>(std::ssize(channels_)), wanted)) return false;
  }
  consider();
  return true;
}

/// Takes each channel out and puts it back at the prices that the others leave.
bool Packer::sweep(int wanted) {
  const float before = best_.worth();
  for (int i = 0; i < wanted && !isDone(wanted); i += twin_ ? 2 : 1) {
    takeOut(i);
    if (!put(i, wanted)) return false;
    consider();
  }
  return best_.worth() > before * 1.0001f;
}

void Packer::negotiate(int wanted, bool twin) {
  empty();
  prices_.forget();
  twin_ = twin;
  noisy_ = false;
  if (!fill(wanted)) return;
  int idle = 0;
  for (int round = 0; round < kRounds && !isDone(wanted); ++round) {
    idle = sweep(wanted) ? 0 : idle + 1;
    if (std::ssize(channels_) < wanted) break;
    prices_.raiseWorst(congestion_);
    noisy_ = idle >= kRoundsBeforeNoise && idle % 2 == 1;
  }
  noisy_ = false;
}

}  // namespace tutti

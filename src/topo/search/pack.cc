#include "topo/search/pack.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace tutti::topo {

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
  capacities.reserve(resources.size());
  for (int r : resources) capacities.push_back(model.capacities()[static_cast<std::size_t>(r)]);
  return capacities;
}

/// What all channels have to share between them: the links of each GPU, and the NICs. Each list of capacities once.
std::vector<std::vector<float>> allDoors(const SearchModel& model, Pattern pattern) {
  std::vector<std::vector<float>> ends;
  for (int g = 0; g < model.gpuCount() && pattern == Pattern::Ring && !model.interNode(); ++g) {
    ends.push_back(doorLinks(model, g, true));
    ends.push_back(doorLinks(model, g, false));
  }
  std::vector<float> speeds;
  speeds.reserve(static_cast<std::size_t>(model.netCount()));
  for (int net = 0; net < model.netCount(); ++net) {
    speeds.push_back(model.machine().facts<NetFacts>(model.netNode(net)).speed);
  }
  if (!speeds.empty()) ends.push_back(std::move(speeds));
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return ends;
}

/// What `count` undivided channels could carry in sum at best.
float potential(float bound, const std::vector<std::vector<float>>& ends, int count) {
  float least = bound / static_cast<float>(count);
  for (const std::vector<float>& end : ends) least = std::min(least, bandwidthThrough(end, count));
  return least * static_cast<float>(count);
}

/// Ten binary digits, rounded: numbers of the same step are all equal to each other, on any computer.
int stepOf(float value) {
  constexpr float kSteps = 1024;
  if (!(value > 0)) return std::numeric_limits<int>::min();
  int exponent = 0;
  const float digits = std::frexp(value, &exponent);  // half to one
  return exponent * static_cast<int>(kSteps) / 2 + static_cast<int>(std::lround(digits * kSteps));
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
    : model_(model), task_(task), prices_(model, task_), congestion_(model, task.inside) {
  next_.prices.n = model.gpuCount();
  next_.prices.closed = task.pattern == Pattern::Ring && !model.interNode();
  next_.straight.resize(at(model.gpuCount()));
  std::iota(next_.straight.begin(), next_.straight.end(), 0);
}

Packing Packer::run() {
  const auto allowance = static_cast<std::int64_t>(kStepsInAll * task_.effort);
  budget_ = allowance / 2;
  twin_ = task_.swapNets;
  std::vector<float> greedy;
  const int unit = together();
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
  const std::vector<std::vector<float>> ends = allDoors(model_, task_.pattern);
  for (int count = task_.minChannels; count <= task_.maxChannels; ++count) {
    if (task_.swapNets && count % 2 != 0) continue;
    counts.push_back(count);
    potentials[at(count)] = potential(task_.bound, ends, count);
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

const std::vector<int>& Packer::hint(int index) const {
  return index > 0 && index <= std::ssize(channels_) ? channels_[at(index - 1)].gpus : next_.straight;
}

/// Adds a channel (and its reverse) at the end, or where one was lifted.
bool Packer::put(int index, int wanted) {
  prices_.set(congestion_, wanted);
  RoutePrices& prices = next_.prices;
  prices_.hops(twin_, noisy_, prices.hop);
  next_.route.price = kNoWay;
  const ChannelEnds* through = nullptr;
  RouteWish wish;
  for (const ChannelEnds& end : prices_.ends(twin_, prices.hop, model_.gpuCount() <= Router::kExactGpus ? 4 : 2)) {
    if (end.least >= next_.route.price) break;
    prices.start = end.start;
    prices.second = end.second;
    prices.end = end.end;
    wish.limit = next_.route.price;
    const RouteResult& found = router_.find(prices, hint(index), wish);
    wish.sameHops = true;
    if (found.price >= next_.route.price) continue;
    next_.route = found;
    through = &end;
  }
  if (through == nullptr) return false;
  place(index, *through);
  return true;
}

void Packer::place(int index, const ChannelEnds& ends) {
  if (index == std::ssize(channels_)) channels_.resize(at(index + together()));
  DenseChannel& channel = channels_[at(index)];
  channel.gpus = next_.route.order;
  channel.netIn = ends.inOf.empty() ? ends.in : ends.inOf[at(channel.gpus.front())];
  channel.netOut = ends.inOf.empty() ? ends.out : ends.outOf[at(channel.gpus.back())];
  congestion_.add(task_.pattern, channel);
  if (!twin_) return;
  DenseChannel& reverse = channels_[at(index + 1)];
  reverse.gpus.assign(channel.gpus.rbegin(), channel.gpus.rend());
  reverse.netIn = channel.netOut;
  reverse.netOut = channel.netIn;
  congestion_.add(task_.pattern, reverse);
}

/// Takes a channel (and its reverse) off the machine, for another one in its place.
void Packer::lift(int index) {
  for (int i = 0; i < together(); ++i) congestion_.remove(task_.pattern, channels_[at(index + i)]);
}

void Packer::consider() {
  const float total = congestion_.total();
  const float worth = best_.worth();
  if (total < worth) return;
  const auto count = static_cast<float>(channels_.size());
  const float length = static_cast<float>(congestion_.length()) / count;
  if (Packing::worthOf(count, total, length) > worth) best_ = {channels_, total, length};
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
  for (int i = 0; i < wanted && !isDone(wanted); i += together()) {
    lift(i);
    if (!put(i, wanted)) {
      channels_.erase(channels_.begin() + i, channels_.begin() + i + together());
      return false;
    }
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

}  // namespace tutti::topo

#include "topo/search/price.h"

#include <algorithm>
#include <array>
#include <map>

namespace tutti::topo {

namespace {

/// What one more channel costs besides its prices, as a number of these.
constexpr std::int64_t kStepsOfCall = 60;
/// ChannelEnds that are tried for one channel.
constexpr std::size_t kMostDoors = 4;

float least(const std::vector<float>& prices) {
  return *std::min_element(prices.begin(), prices.end());
}

std::size_t place(int i) {
  return static_cast<std::size_t>(i);
}

/// The cheapest few of what is offered, cheapest first, of equal ones the first offered first.
class Cheapest {
 public:
  explicit Cheapest(int atMost) : atMost_(std::min(place(atMost), kMostDoors)) {}
  void offer(int index, float price) {
    std::size_t rank = count_;
    while (rank > 0 && price < few_[rank - 1].price) --rank;
    if (rank >= atMost_) return;
    count_ = std::min(count_ + 1, atMost_);
    for (std::size_t i = count_ - 1; i > rank; --i) few_[i] = few_[i - 1];
    few_[rank] = {index, price};
  }
  std::size_t count() const { return count_; }
  int operator[](std::size_t rank) const { return few_[rank].index; }

 private:
  struct Offer {
    int index = 0;
    float price = 0;
  };
  std::size_t atMost_;
  std::size_t count_ = 0;
  std::array<Offer, kMostDoors> few_;
};

}  // namespace

PriceList::PriceList(const SearchModel& model, const PackTask& task)
    : model_(model), task_(task), prices_(model, task.inside), netPrices_(place(model.netCount())) {
  for (int net = 0; net < model.netCount(); ++net) {
    if (isAllowed(net)) nets_.push_back(net);
  }
  for (int in : nets_) {
    for (int out : nets_) {
      if (model.sameRail(in, out)) rails_.emplace_back(in, out);
    }
  }
  findPlanes();
  countWays();
}

bool PriceList::isAllowed(int net) const {
  return !task_.collectiveOnly || model_.machine().facts<NetFacts>(model_.netNode(net)).collective;
}

/// NICs without a plane go with all planes, so they are one only if there are no others.
void PriceList::findPlanes() {
  std::map<int, int> found;
  for (const int net : nets_) found.try_emplace(model_.machine().facts<NetFacts>(model_.netNode(net)).plane, net);
  if (found.size() > 1) found.erase(-1);
  for (const auto& [plane, first] : found) {
    std::vector<int>& nets = planes_.emplace_back();
    for (const int net : nets_) {
      if (model_.samePlane(net, first)) nets.push_back(net);
    }
  }
}

void PriceList::countWays() {
  const int n = model_.gpuCount();
  for (int a = 0; a < n; ++a) {
    for (int b = 0; b < n; ++b) hopCount_ += a != b && model_.hop(a, b).usable() ? 1 : 0;
  }
  for (const int net : nets_) {
    NetPrices& prices = priced(net);
    prices.entries.resize(place(n));
    prices.exits.resize(place(n));
    for (int g = 0; g < n; ++g) {
      prices.entryCount += model_.entry(net, g).usable() ? 1 : 0;
      prices.exitCount += model_.exit(g, net).usable() ? 1 : 0;
    }
  }
}

void PriceList::set(const Congestion& congestion, int wanted) {
  const float target = std::max(congestion.worst(), static_cast<float>(wanted) / std::max(task_.bound, kLeastCapacity));
  steps_ += prices_.resourceCount() / 2 + kStepsOfCall;
  prices_.set(congestion, target);
}

float PriceList::noise() {
  seed_ ^= seed_ << 13;
  seed_ ^= seed_ >> 7;
  seed_ ^= seed_ << 17;
  return static_cast<float>(seed_ >> 40) / static_cast<float>(1 << 24);
}

void PriceList::hops(bool twin, bool noisy, std::vector<float>& prices) {
  const int n = model_.gpuCount();
  prices.assign(place(n) * place(n), kNoWay);
  const auto hop = [&](int a, int b) -> float& { return prices[place(a) * place(n) + place(b)]; };
  for (int a = 0; a < n; ++a) {
    for (int b = 0; b < n; ++b) {
      if (a != b) hop(a, b) = prices_.priceOf(model_.hop(a, b)) * (noisy ? 1 + 0.5f * noise() : 1.0f);
    }
  }
  steps_ += hopCount_;
  for (int a = 0; twin && a < n; ++a) {
    for (int b = 0; b < a; ++b) hop(a, b) = hop(b, a) = hop(a, b) + hop(b, a);
  }
}

std::span<const ChannelEnds> PriceList::ends(bool twin, const std::vector<float>& hops, int atMost) {
  doorCount_ = 0;
  if (!model_.interNode()) {
    closedDoors(hops);
    return {ends_.data(), doorCount_};
  }
  setNets(twin);
  if (task_.pattern != Pattern::Ring) {
    chainDoors(atMost);
  } else if (task_.swapNets) {
    swappedDoors();
  } else {
    railDoors(twin, atMost);
  }
  const std::span<ChannelEnds> ends(ends_.data(), doorCount_);
  for (ChannelEnds& end : ends) end.least = least(end.start) + least(end.end);
  if (task_.swapNets && ends.size() > 1) {
    std::stable_sort(ends.begin(), ends.end(),
                     [](const ChannelEnds& a, const ChannelEnds& b) { return a.least < b.least; });
  }
  return ends;
}

/// With room for all GPUs.
ChannelEnds& PriceList::nextDoors(int in, int out) {
  if (doorCount_ == ends_.size()) ends_.emplace_back();
  ChannelEnds& ends = ends_[doorCount_++];
  ends.in = in;
  ends.out = out;
  ends.start.resize(place(model_.gpuCount()));
  ends.end.resize(ends.start.size());
  return ends;
}

/// One machine: a cycle begins anywhere, so at the first GPU; a chain's ends cost nothing.
void PriceList::closedDoors(const std::vector<float>& hops) {
  const std::size_t n = place(model_.gpuCount());
  ChannelEnds& ends = nextDoors(-1, -1);
  std::fill(ends.start.begin(), ends.start.end(), 0.0f);
  std::fill(ends.end.begin(), ends.end.end(), 0.0f);
  if (task_.pattern == Pattern::Ring && n > 1) {
    std::fill(ends.start.begin() + 1, ends.start.end(), kNoWay);
    for (std::size_t g = 0; g < n; ++g) ends.end[g] = hops[g * n];
  }
}

/// What ways between NICs and GPUs cost; `twin`: with those of a channel's reverse.
void PriceList::setNets(bool twin) {
  for (const int net : nets_) {
    NetPrices& prices = priced(net);
    prices.least = prices.leastIn = prices.leastOut = kNoWay;
    for (int g = 0; g < model_.gpuCount(); ++g) {
      const float in = prices_.priceOf(model_.entry(net, g));
      const float out = prices_.priceOf(model_.exit(g, net));
      const float both = in + out;
      prices.entries[place(g)] = twin ? both : in;
      prices.exits[place(g)] = twin ? both : out;
      prices.least = std::min(prices.least, both);
      prices.leastIn = std::min(prices.leastIn, prices.entries[place(g)]);
      prices.leastOut = std::min(prices.leastOut, prices.exits[place(g)]);
    }
  }
}

void PriceList::railDoors(bool twin, int atMost) {
  Cheapest chosen(atMost);
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    chosen.offer(static_cast<int>(i), priced(rails_[i].first).leastIn + priced(rails_[i].second).leastOut);
  }
  for (const int net : nets_) steps_ += (priced(net).entryCount + priced(net).exitCount) * (twin ? 2L : 1L);
  for (std::size_t i = 0; i < chosen.count(); ++i) {
    const auto [in, out] = rails_[place(chosen[i])];
    ChannelEnds& ends = nextDoors(in, out);
    ends.start = priced(in).entries;
    ends.end = priced(out).exits;
    steps_ += priced(in).entryCount + priced(out).exitCount;
    if (twin) steps_ += priced(in).exitCount + priced(out).entryCount;
  }
}

void PriceList::swappedDoors() {
  for (const std::vector<int>& nets : planes_) swappedDoors(nets);
}

/// The reverse of the channel comes in where it leaves: each end takes the NIC that is cheapest there both ways.
void PriceList::swappedDoors(const std::vector<int>& nets) {
  ChannelEnds& ends = nextDoors(-1, -1);
  ends.inOf.assign(ends.start.size(), -1);
  std::fill(ends.start.begin(), ends.start.end(), kNoWay);
  for (const int net : nets) {
    const NetPrices& prices = priced(net);
    steps_ += prices.entryCount + prices.exitCount;
    for (std::size_t g = 0; g < ends.start.size(); ++g) {
      if (prices.entries[g] >= ends.start[g]) continue;
      ends.start[g] = prices.entries[g];
      ends.inOf[g] = net;
    }
  }
  ends.end = ends.start;
  ends.outOf = ends.inOf;
}

/// Trees: in and out at the chain's first GPU, or half there and half at the second.
void PriceList::chainDoors(int atMost) {
  const bool two = entersAtTwo(task_.pattern) && model_.gpuCount() > 1;
  Cheapest chosen(atMost);
  for (std::size_t i = 0; i < nets_.size(); ++i) {
    chosen.offer(nets_[i], priced(nets_[i]).least);
    steps_ += priced(nets_[i]).entryCount + priced(nets_[i]).exitCount;
  }
  for (std::size_t i = 0; i < chosen.count(); ++i) {
    const NetPrices& prices = priced(chosen[i]);
    steps_ += prices.entryCount + prices.exitCount;
    ChannelEnds& ends = nextDoors(chosen[i], chosen[i]);
    ends.second.clear();
    for (std::size_t g = 0; g < ends.start.size(); ++g) {
      const float price = std::min(prices.entries[g] + prices.exits[g], kNoWay);
      const float half = price < kNoWay ? price / 2 : kNoWay;
      ends.start[g] = two ? half : price;
      if (two) ends.second.push_back(half);
    }
    std::fill(ends.end.begin(), ends.end.end(), 0.0f);
  }
}

}  // namespace tutti::topo

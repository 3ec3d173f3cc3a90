#include "topo/search/once.h"

#include <algorithm>
#include <utility>

#include "topo/search/bound.h"
#include "topo/search/heads.h"
#include "topo/search/pack.h"

namespace tutti::topo {

namespace {

constexpr int kNvlsSm = 90;
/// What is had where nothing connects.
constexpr float kFallbackBandwidth = 0.1f;
/// NICs of another rail have to give that much more, unless they are nearer.
constexpr float kWorthWhile = 1.002f;

/// So many of the amounts that NVLinks carry are tried as the most that they carry.
constexpr std::size_t kLevels = 3;

/// A channel is work for one block of threads: more bandwidth than this (GB/s) is better split among several channels.
float channelBandwidth(const SearchModel& model, int channels) {
  constexpr int kManyChannels = 4;
  if (model.interNode() && channels > kManyChannels) return 51;
  const int sm = model.lowestSm();
  if (sm >= 100) return 46;
  if (sm >= 90) return 32;
  return model.interNode() ? 26 : 21;
}

constexpr float kMoreInside = 1.02f;

/// One graph's search.
class GraphSearch {
 public:
  GraphSearch(SearchPlace& place, const GraphRequest& request, const SearchSettings& settings, float effort)
      : model_(place.model), memory_(place.memory), request_(request), settings_(settings), effort_(effort) {
    // One GPU has no chain to balance, and no one to be head of.
    if (model_.gpuCount() == 1 && request.pattern != Pattern::Ring) {
      request_.pattern = Pattern::Tree;
      if (request.id == GraphId::CollNetDirect) request_.minChannels = request_.maxChannels = 1;
    }
  }

  Graph run() {
    graph_.id = request_.id;
    graph_.pattern = request_.pattern;
    if (!isWanted()) return graph_;
    if (model_.interNode() || model_.gpuCount() > 1) {
      pack();
    } else {
      alone();
    }
    if (!packing_.channels.empty()) {
      fill();
    } else if (!isOptional()) {
      fallBack();
    }
    return graph_;
  }

 private:
  bool isOptional() const { return isCollNet(request_.id) || request_.id == GraphId::Nvls; }
  bool isWanted() const;
  PackTask task(Pattern pattern) const;
  void alone();
  void pack();
  struct PackedRing {
    Packing packing;
    int crossNic = 0;
  };
  void packRing();
  PackedRing ringOf(const SearchModel& model, float bound) const;
  void packChain();
  void tryChain(Pattern pattern, float inside);
  void split();
  void fill();

  /// NICs and GPUs where a last resort enters and leaves; -1: nowhere.
  struct LastEnds {
    int in = -1;
    int out = -1;
    int first = -1;
    int last = -1;
  };
  LastEnds anyEnds() const;
  LastEnds endsBetween(int in, int out) const;
  DenseChannel anyChannel() const;
  void fallBack();
  GraphChannel named(const DenseChannel& channel) const;

  const SearchModel& model_;
  SearchMemory& memory_;
  GraphRequest request_;
  SearchSettings settings_;
  float effort_;
  Packing packing_;
  Graph graph_;
};

bool GraphSearch::isWanted() const {
  if (model_.gpuCount() == 0) return false;
  if (isCollNet(request_.id)) return settings_.collNet && model_.interNode();
  if (request_.id != GraphId::Nvls) return true;
  return settings_.nvls && model_.gpuCount() > 1 && model_.lowestSm() >= kNvlsSm && model_.toSwitch(0).usable();
}

PackTask GraphSearch::task(Pattern pattern) const {
  PackTask task{.pattern = pattern, .collectiveOnly = isCollNet(request_.id)};
  task.effort = effort_ * (request_.pattern == Pattern::Ring ? 2.0f : 0.3f);
  task.minChannels = request_.minChannels;
  task.maxChannels = std::max(request_.maxChannels, task.minChannels);
  return task;
}

/// One GPU on one machine has nobody to talk to: as many channels as may be, for its copies.
void GraphSearch::alone() {
  packing_.channels.assign(static_cast<std::size_t>(std::max(request_.maxChannels, 1)), DenseChannel{.gpus = {0}});
}

void GraphSearch::pack() {
  if (request_.pattern == Pattern::Ring) {
    packRing();
  } else if (isChain(request_.pattern)) {
    packChain();
  } else {
    PackTask heads = task(request_.pattern);
    const int most = request_.pattern == Pattern::Nvls ? kMaxNvlsHeads : kMaxDirectHeads;
    heads.maxChannels = std::min({heads.maxChannels, most, model_.gpuCount()});
    if (!model_.interNode()) heads.minChannels = heads.maxChannels;
    heads.bound = headBound(model_, request_.pattern, heads.maxChannels, heads.collectiveOnly);
    packing_ = packHeads(model_, heads);
  }
}

/// With links that differ, what is best without the excess of some of them may be better than what is found with it.
void GraphSearch::packRing() {
  const float bound = memory_.channelBound(Pattern::Ring, false);
  PackedRing best = ringOf(model_, bound);
  const std::vector<float> levels = model_.nvLinkLevels();
  for (std::size_t i = 0; i + 1 < levels.size() && i < kLevels && !best.packing.reaches(bound); ++i) {
    const SearchModel levelled = model_.levelled(levels[i]);
    PackedRing ring = ringOf(levelled, channelBound(levelled, Pattern::Ring, false));
    Congestion congestion(model_);
    for (const DenseChannel& channel : ring.packing.channels) congestion.add(Pattern::Ring, channel);
    ring.packing.total = congestion.total();
    if (ring.packing.total > best.packing.total * kWorthWhile) best = std::move(ring);
  }
  packing_ = std::move(best.packing);
  graph_.crossNic = best.crossNic;
  split();
}

GraphSearch::PackedRing GraphSearch::ringOf(const SearchModel& model, float bound) const {
  PackTask rail = task(Pattern::Ring);
  rail.bound = bound;
  PackedRing ring{Packer(model, rail).run(), settings_.crossNic == 1 && model.interNode() ? 1 : 0};
  const bool mayCross = settings_.crossNic != 0 && model.netCount() > 1 && rail.maxChannels > 1;
  const auto farthest = [&](const Packing& packing) {
    return std::max(PathType::Pxn, longestWays(model, Pattern::Ring, packing.channels).inter);
  };
  if (!mayCross || (ring.packing.reaches(rail.bound) && farthest(ring.packing) <= PathType::Pxn)) return ring;
  PackTask swapped = rail;
  swapped.swapNets = true;
  Packing crossing = Packer(model, swapped).run();
  const bool nearer = farthest(crossing) < farthest(ring.packing) && crossing.total * kWorthWhile > ring.packing.total;
  if (nearer || crossing.total > ring.packing.total * kWorthWhile) ring = {std::move(crossing), settings_.crossNic};
  return ring;
}

/// Copies channels that have more bandwidth than one channel is good for, each copy with its part.
void GraphSearch::split() {
  const auto channels = static_cast<int>(packing_.channels.size());
  if (channels == 0) return;
  const float bandwidth = packing_.total / static_cast<float>(channels);
  int copies = 1;
  while (bandwidth / static_cast<float>(copies) > channelBandwidth(model_, channels) &&
         channels * (copies + 1) <= request_.maxChannels) {
    ++copies;
  }
  const std::vector<DenseChannel> once = packing_.channels;
  for (int copy = 1; copy < copies; ++copy) {
    packing_.channels.insert(packing_.channels.end(), once.begin(), once.end());
  }
}

/// A balanced tree if asked for, unless a plain one carries more; with as much to the network as there can be, and then
/// as much inside.
void GraphSearch::packChain() {
  tryChain(request_.pattern, 1);
  const bool reached = packing_.reaches(memory_.channelBound(request_.pattern, isCollNet(request_.id)));
  if (!model_.interNode() || model_.gpuCount() == 1) return;
  if (!reached && request_.pattern != Pattern::Tree) tryChain(Pattern::Tree, 1);
  const Bandwidths found = bandwidthsOf(model_, graph_.pattern, packing_.channels);
  if (found.intra < kUsefulInside * found.inter) tryChain(graph_.pattern, kUsefulInside);
}

void GraphSearch::tryChain(Pattern pattern, float inside) {
  PackTask chain = task(pattern);
  chain.inside = inside;
  chain.bound = memory_.channelBound(pattern, chain.collectiveOnly, inside);
  const Packing& packing = memory_.pack(chain);
  if (packing.channels.empty()) return;
  if (!packing_.channels.empty()) {
    const Bandwidths now = bandwidthsOf(model_, pattern, packing.channels);
    const Bandwidths before = bandwidthsOf(model_, graph_.pattern, packing_.channels);
    const bool more = now.inter > before.inter * kWorthWhile;
    const bool asMuch = now.inter * kWorthWhile >= before.inter && now.intra > before.intra * kMoreInside;
    if (!more && !(asMuch && pattern == graph_.pattern)) return;
  }
  packing_ = packing;
  graph_.pattern = pattern;
}

GraphChannel GraphSearch::named(const DenseChannel& channel) const {
  GraphChannel named;
  for (int gpu : channel.gpus) named.gpus.push_back(model_.gpuNode(gpu));
  if (channel.netIn >= 0) named.netIn = model_.netNode(channel.netIn);
  if (channel.netOut >= 0) named.netOut = model_.netNode(channel.netOut);
  return named;
}

void GraphSearch::fill() {
  const Bandwidths bandwidths = bandwidthsOf(model_, graph_.pattern, packing_.channels);
  graph_.bwIntra = bandwidths.intra;
  graph_.bwInter = bandwidths.inter;
  const LongestWays longest = longestWays(model_, graph_.pattern, packing_.channels);
  graph_.typeIntra = longest.intra;
  graph_.typeInter = model_.interNode() ? longest.inter : PathType::Pix;
  graph_.sameChannels = true;
  for (const DenseChannel& channel : packing_.channels) {
    graph_.channels.push_back(named(channel));
    if (channel.gpus != packing_.channels.front().gpus) graph_.sameChannels = false;
  }
  const int last = graph_.channels.back().netIn;
  if (last >= 0) graph_.latencyInter = model_.machine().facts<NetFacts>(last).latency;
}

/// The machine's order, but for the ends of a machine among several, where NICs are reached; no NICs if it cannot end
/// so.
DenseChannel GraphSearch::anyChannel() const {
  DenseChannel channel;
  for (int gpu = 0; gpu < model_.gpuCount(); ++gpu) channel.gpus.push_back(gpu);
  const LastEnds ends = anyEnds();
  if (ends.first < 0) return channel;
  channel.netIn = ends.in;
  channel.netOut = ends.out;
  std::vector<int>& order = channel.gpus;
  const auto first = std::find(order.begin(), order.end(), ends.first);
  std::rotate(order.begin(), first, first + 1);
  const auto last = std::find(order.begin(), order.end(), ends.last);
  std::rotate(last, last + 1, order.end());
  return channel;
}

/// The first that are possible: over one NIC, else over one rail, else within one plane. Only a ring leaves elsewhere
/// than it came in.
GraphSearch::LastEnds GraphSearch::anyEnds() const {
  const int nets = model_.netCount();
  const bool ring = request_.pattern == Pattern::Ring;
  const auto near = [&](int in, int out) { return in == out ? 0 : model_.sameRail(in, out) ? 1 : 2; };
  LastEnds best;
  int nearest = ring ? 3 : 1;
  for (int in = 0; in < nets; ++in) {
    for (int out = 0; out < nets; ++out) {
      if (!model_.samePlane(in, out) || near(in, out) >= nearest) continue;
      const LastEnds ends = endsBetween(in, out);
      if (ends.first < 0) continue;
      best = ends;
      nearest = near(in, out);
    }
  }
  return best;
}

GraphSearch::LastEnds GraphSearch::endsBetween(int in, int out) const {
  const bool ring = request_.pattern == Pattern::Ring && model_.gpuCount() > 1;
  for (int first = 0; first < model_.gpuCount(); ++first) {
    if (!model_.entry(in, first).usable() || (!ring && !model_.exit(first, out).usable())) continue;
    for (int last = model_.gpuCount() - 1; last >= 0; --last) {
      const bool other = last != first || model_.gpuCount() == 1;
      if (other && (!ring || model_.exit(last, out).usable())) return {in, out, first, last};
    }
  }
  return {};
}

void GraphSearch::fallBack() {
  const DenseChannel channel = anyChannel();
  if (channel.netIn >= 0 && !model_.sameRail(channel.netIn, channel.netOut)) graph_.crossNic = 1;
  if (isChain(graph_.pattern) && channel.netIn >= 0 && channel.gpus.size() > 1) {
    const int second = channel.gpus[1];
    const bool both = model_.entry(channel.netIn, second).usable() && model_.exit(second, channel.netIn).usable();
    if (!both) graph_.pattern = Pattern::Tree;
  }
  graph_.channels = {named(channel)};
  graph_.sameChannels = true;
  graph_.bwIntra = kFallbackBandwidth;
  graph_.bwInter = channel.netIn >= 0 || !model_.interNode() ? kFallbackBandwidth : 0;
  graph_.typeIntra = PathType::Sys;
  graph_.typeInter = graph_.bwInter > 0 ? PathType::Sys : PathType::Dis;
}

}  // namespace

bool isChain(Pattern pattern) {
  return pattern == Pattern::Tree || pattern == Pattern::BalancedTree || pattern == Pattern::SplitTree;
}

Graph searchOnce(SearchPlace& place, const GraphRequest& request, const SearchSettings& settings, float effort) {
  return GraphSearch(place, request, settings, effort).run();
}

float boundOf(SearchPlace& place, const GraphRequest& request) {
  const SearchModel& model = place.model;
  const bool collectiveOnly = isCollNet(request.id);
  if (request.pattern == Pattern::Nvls || request.pattern == Pattern::CollNetDirect) {
    const int most = request.pattern == Pattern::Nvls ? kMaxNvlsHeads : kMaxDirectHeads;
    return headBound(model, request.pattern, std::min({request.maxChannels, most, model.gpuCount()}), collectiveOnly);
  }
  return place.memory.channelBound(request.pattern, collectiveOnly);
}

}  // namespace tutti::topo

#include "topo/search/heads.h"

#include <algorithm>

namespace tutti::topo {

namespace {

constexpr int kHeadRounds = 2;
/// Of a GPU and a NIC.
constexpr int kFewPairs = 16;

class HeadPacker {
 public:
  HeadPacker(const SearchModel& model, const PackTask& task)
      : model_(model),
        task_(task),
        prices_(model, task_),
        congestion_(model),
        isHead_(static_cast<std::size_t>(model.gpuCount())) {}

  Packing run() {
    while (std::ssize(channels_) < task_.maxChannels && add()) {
      if (std::ssize(channels_) < task_.minChannels) continue;
      consider();
      const std::vector<DenseChannel> greedy = channels_;
      for (int i = 0; i < kHeadRounds * static_cast<int>(greedy.size()) && mayImprove(); ++i) {
        takeOut();
        if (model_.gpuCount() * model_.netCount() <= kFewPairs) tryAll();
        add();
        consider();
      }
      while (!channels_.empty()) takeOut();
      for (const DenseChannel& channel : greedy) put(channel);
    }
    return best_;
  }

 private:
  /// Greed is as good on large machines, whose GPUs are alike.
  bool mayImprove() const { return model_.interNode() && model_.gpuCount() <= 8; }

  /// Prices do not see what is left for the inside to use; few pairs can all be tried.
  void tryAll() {
    for (int gpu = 0; gpu < model_.gpuCount(); ++gpu) {
      if (isHead_[static_cast<std::size_t>(gpu)] || priceOf(channelOf(gpu, -1)) >= kNoWay) continue;
      for (int net : prices_.nets()) {
        if (!model_.entry(net, gpu).usable() || !model_.exit(gpu, net).usable()) continue;
        channels_.push_back(channelOf(gpu, net));
        consider();
        channels_.pop_back();
      }
    }
  }

  void consider() {
    Bandwidths total = bandwidthsOf(model_, task_.pattern, channels_);
    const auto count = static_cast<float>(channels_.size());
    total.intra *= count;
    total.inter *= count;
    const float slack = 1e-4f * most_.inter;
    const bool better =
        total.inter > most_.inter + slack || (total.inter > most_.inter - slack && total.intra > most_.intra * 1.0001f);
    if (!better) return;
    most_ = total;
    best_.channels = channels_;
  }

  void put(DenseChannel channel) {
    isHead_[static_cast<std::size_t>(channel.gpus.front())] = true;
    congestion_.add(task_.pattern, channel);
    channels_.push_back(std::move(channel));
  }

  /// The one that was put first.
  void takeOut() {
    isHead_[static_cast<std::size_t>(channels_.front().gpus.front())] = false;
    congestion_.remove(task_.pattern, channels_.front());
    channels_.erase(channels_.begin());
  }

  bool add() {
    prices_.set(congestion_, static_cast<int>(std::ssize(channels_)) + 1);
    float cheapest = kNoWay;
    DenseChannel chosen;
    for (int gpu = 0; gpu < model_.gpuCount(); ++gpu) {
      if (isHead_[static_cast<std::size_t>(gpu)]) continue;
      const DenseChannel inside = channelOf(gpu, -1);
      const float price = priceOf(inside);
      if (price >= cheapest) continue;
      if (!model_.interNode()) {
        cheapest = price;
        chosen = inside;
        continue;
      }
      for (int net : prices_.nets()) {
        const float both = price + prices_.priceOf(model_.entry(net, gpu)) + prices_.priceOf(model_.exit(gpu, net));
        if (both >= cheapest) continue;
        cheapest = both;
        chosen = inside;
        chosen.netIn = chosen.netOut = net;
      }
    }
    if (chosen.gpus.empty()) return false;
    put(std::move(chosen));
    return true;
  }

  DenseChannel channelOf(int head, int net) const {
    DenseChannel channel{.gpus = {head}, .netIn = net, .netOut = net};
    for (int gpu = 0; gpu < model_.gpuCount(); ++gpu) {
      if (gpu != head) channel.gpus.push_back(gpu);
    }
    return channel;
  }

  float priceOf(const DenseChannel& channel) const {
    float sum = 0;
    visitWays(model_, task_.pattern, channel, [&](const SearchWay& way, float share, bool) {
      sum += way.usable() ? share * prices_.priceOf(way) : kNoWay;
    });
    return sum;
  }

  const SearchModel& model_;
  PackTask task_;
  PriceList prices_;
  Congestion congestion_;
  std::vector<DenseChannel> channels_;
  std::vector<bool> isHead_;
  Packing best_;
  Bandwidths most_;  ///< of the best, in sum
};

}  // namespace

Packing packHeads(const SearchModel& model, const PackTask& task) {
  return HeadPacker(model, task).run();
}

}  // namespace tutti::topo

#include "topo/search_heads.h"

#include <algorithm>

namespace tutti {

namespace {

class HeadPacker {
 public:
  HeadPacker(const SearchModel& model, const PackTask& task)
      : model_(model),
        task_(task),
        prices_(model, task_),
        congestion_(model),
        isHead_(static_cast<std::size_t>(model.gpuCount())) {}

  Packing run() {
    Packing best;
    Bandwidths bestBandwidths;
    while (std::ssize(channels_) < task_.maxChannels && add()) {
      if (std::ssize(channels_) < task_.minChannels) continue;
      Bandwidths total = bandwidthsOf(model_, task_.pattern, channels_);
      const auto count = static_cast<float>(channels_.size());
      total.intra *= count;
      total.inter *= count;
      const float slack = 1e-4f * bestBandwidths.inter;
      const bool better = total.inter > bestBandwidths.inter + slack ||
                          (total.inter > bestBandwidths.inter - slack && total.intra > bestBandwidths.intra * 1.0001f);
      if (!better) continue;
      bestBandwidths = total;
      best.channels = channels_;
      best.total = congestion_.total();
    }
    return best;
  }

 private:
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
    isHead_[static_cast<std::size_t>(chosen.gpus.front())] = true;
    congestion_.add(task_.pattern, chosen);
    channels_.push_back(std::move(chosen));
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
    visitWays(model_, task_.pattern, channel,
              [&](const SearchWay& way, float share, bool) { sum += share * prices_.priceOf(way); });
    return sum;
  }

  const SearchModel& model_;
  PackTask task_;
  PriceList prices_;
  Congestion congestion_;
  std::vector<DenseChannel> channels_;
  std::vector<bool> isHead_;
};

}  // namespace

Packing packHeads(const SearchModel& model, const PackTask& task) {
  return HeadPacker(model, task).run();
}

}  // namespace tutti

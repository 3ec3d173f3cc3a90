// Loads of channels on a machine's resources, and the bandwidths that they leave possible. Pure.
#pragma once

#include <vector>

#include "topo/search/model.h"

namespace tutti::topo {

/// What some channels take, per GB/s of a channel's bandwidth to the network; inside of the machine it is `inside`
/// times that.
class Congestion {
 public:
  explicit Congestion(const SearchModel& model, float inside = 1);

  void add(Pattern pattern, const DenseChannel& channel) { change(pattern, channel, 1); }
  void remove(Pattern pattern, const DenseChannel& channel) { change(pattern, channel, -1); }
  /// Channels x bandwidth that all resources carry; 0 while there is no channel.
  float total() const;
  /// The largest load in proportion to capacity: 1 / bandwidth of a channel.
  float worst() const;
  float load(int resource) const { return loads_[static_cast<std::size_t>(resource)]; }
  int channels() const { return channels_; }
  /// Types of all channels' ways in sum.
  int length() const { return length_; }

 private:
  void change(Pattern pattern, const DenseChannel& channel, int sign);
  float computeWorst() const;

  const SearchModel& model_;
  float inside_;
  std::vector<float> loads_;       ///< padded for computeWorst()
  std::vector<float> capacities_;  ///< likewise
  int channels_ = 0;
  int length_ = 0;
  mutable float worst_ = 0;  ///< below 0: not known
};

/// GB/s of each channel.
struct Bandwidths {
  float intra = 0;
  float inter = 0;
};

/// The most that these channels carry: first both alike, then more inside the machine with what is left, then more
/// outside. Rings: both alike. What nothing limits is twice what the other is; one GPU to itself has 5000 GB/s.
Bandwidths bandwidthsOf(const SearchModel& model, Pattern pattern, const std::vector<DenseChannel>& channels);

/// The longest ways that these channels use.
struct LongestWays {
  PathType intra = PathType::Loc;
  PathType inter = PathType::Loc;
};
LongestWays longestWays(const SearchModel& model, Pattern pattern, const std::vector<DenseChannel>& channels);

}  // namespace tutti::topo

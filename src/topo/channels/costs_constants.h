// The numbers behind the costs of algorithms on GPUs, after NCCL's published tuning constants. Latencies in
// microseconds, bandwidths in GB/s.
#pragma once

#include <array>
#include <cstddef>

namespace tutti::topo::costs {

/// By protocol: LL, LL128, Simple.
using PerProtocol = std::array<double, 3>;

/// What one launch and the work around the data cost.
inline constexpr PerProtocol kTreeBase{6.8, 14.0, 8.4};
inline constexpr PerProtocol kRingBase{6.6, 14.0, 8.4};
inline constexpr PerProtocol kPatBase{8.0, 8.0, 8.0};

/// One hop, by kind of link.
enum Link { kNvlink, kPci, kNetwork, kLinks };
inline constexpr std::array<PerProtocol, kLinks> kTreeHop{{{0.6, 1.25, 4.0}, {1.0, 1.9, 4.0}, {5.0, 8.5, 14.0}}};
inline constexpr std::array<PerProtocol, kLinks> kRingHop{{{0.6, 1.9, 3.4}, {1.0, 2.5, 5.7}, {2.7, 4.0, 14.0}}};
inline constexpr std::array<double, kLinks> kPatHop{4.0, 4.0, 14.0};
/// These have the Simple protocol only. NVLS has no PCI: it needs an NVSwitch.
inline constexpr std::array<double, kLinks> kCollNetDirectHop{3.7, 3.7, 31.0};
inline constexpr std::array<double, kLinks> kCollNetChainHop{2.8, 2.8, 30.0};
inline constexpr std::array<double, kLinks> kNvlsHop{25.0, 0.0, 18.0};
inline constexpr std::array<double, kLinks> kNvlsTreeHop{25.0, 0.0, 20.9};

/// Rows: compute capability below 8, 8, 9, from 10. Columns: one node, two, more.
enum Generation { kVolta, kAmpere, kHopper, kBlackwell, kGenerations };
using PerNodes = std::array<double, 3>;
inline constexpr std::array<PerNodes, kGenerations> kLlMost{
    {{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141.0, 45.0, 35.0}, {282.0, 90.0, 70.0}}};
inline constexpr std::array<PerNodes, kGenerations> kRingLl128PerChannel{
    {{20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 36.7}, {40.0, 40.0, 40.0}}};
inline constexpr std::array<PerNodes, kGenerations> kTreeLl128PerChannel{
    {{20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 29.0}, {55.6, 31.67, 20.0}}};
inline constexpr std::array<PerNodes, kGenerations> kTreePerChannel{
    {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70.0, 42.8, 24.0}}};
inline constexpr std::array<PerNodes, kGenerations> kNvlsTreePerChannel{
    {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {0.0, 57.7, 45.5}, {0.0, 96.0, 80.0}}};
inline constexpr std::array<double, kGenerations> kNvlsShare{0.0, 0.0, 0.85, 0.74};

/// All that a tuner plugin may change, in its order: by algorithm (as CostAlgorithm has them) and protocol, by link, by
/// generation and number of nodes.
inline constexpr std::size_t kAlgorithms = 7;
struct Constants {
  std::array<PerProtocol, kAlgorithms> base{};
  std::array<std::array<PerProtocol, kAlgorithms>, kLinks> hop{};
  std::array<PerNodes, kGenerations> llMost{};
  std::array<PerNodes, kGenerations> ringLl128PerChannel{};
  std::array<PerNodes, kGenerations> treeLl128PerChannel{};
  std::array<PerNodes, kGenerations> treePerChannel{};
  std::array<PerNodes, kGenerations> nvlsTreePerChannel{};

  bool operator==(const Constants&) const = default;
};

constexpr Constants published() {
  constexpr auto onlySimple = [](double value) { return PerProtocol{0, 0, value}; };
  Constants all;
  all.base = {kTreeBase, kRingBase, {}, {}, {}, {}, kPatBase};
  for (std::size_t link = 0; link < kLinks; ++link) {
    all.hop[link] = {kTreeHop[link],
                     kRingHop[link],
                     onlySimple(kCollNetDirectHop[link]),
                     onlySimple(kCollNetChainHop[link]),
                     onlySimple(kNvlsHop[link]),
                     onlySimple(kNvlsTreeHop[link]),
                     onlySimple(kPatHop[link])};
  }
  all.llMost = kLlMost;
  all.ringLl128PerChannel = kRingLl128PerChannel;
  all.treeLl128PerChannel = kTreeLl128PerChannel;
  all.treePerChannel = kTreePerChannel;
  all.nvlsTreePerChannel = kNvlsTreePerChannel;
  return all;
}
inline constexpr Constants kPublished = published();

constexpr Generation generationOf(int computeCapability) {
  if (computeCapability < 80) return kVolta;
  if (computeCapability < 90) return kAmpere;
  return computeCapability < 100 ? kHopper : kBlackwell;
}

constexpr std::size_t columnOf(int nNodes) {
  return nNodes < 2 ? 0 : nNodes == 2 ? 1 : 2;
}

}  // namespace tutti::topo::costs

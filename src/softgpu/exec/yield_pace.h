// How often a waiting thread gives its processor away.
#pragma once

#include <cstdint>

namespace tutti::softgpu {

/// What one thread knows of its yields. A yield takes half a microsecond even where nobody wants the processor, in
/// which nobody looks for what is waited for: where the last ones went to nobody, the next ones are rare. Times in
/// nanoseconds.
class YieldPace {
 public:
  /// A yield to somebody takes longer than that, one to nobody a fraction of it.
  static constexpr std::int64_t kSwitch = 1'500;

  /// Whether a thread that waits since `since` should yield at `now`.
  bool due(std::int64_t now, std::int64_t since) const {
    if (unwanted_ < kUnwanted) return now - since >= kBefore;
    return now - since >= kRare && now - last_ >= kRare;
  }

  /// A yield took from `before` to `after`. Returns whether somebody else had the processor meanwhile.
  bool yielded(std::int64_t before, std::int64_t after) {
    const bool wanted = after - before >= kSwitch;
    unwanted_ = wanted ? 0 : unwanted_ + (unwanted_ < kUnwanted ? 1 : 0);
    last_ = after;
    return wanted;
  }

 private:
  static constexpr std::int64_t kBefore = 2'000;
  static constexpr std::int64_t kRare = 10'000;
  static constexpr int kUnwanted = 4;
  int unwanted_ = 0;
  std::int64_t last_ = 0;
};

}  // namespace tutti::softgpu

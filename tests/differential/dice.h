// Random numbers that are the same on every machine for a seed, which those of the standard library are not.
#pragma once

#include <cstddef>
#include <cstdint>

namespace differential {

/// Not for several threads at once. Copies go on alike.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31U);
  }

  /// From 0 to `bound` - 1; `bound` is at least 1.
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(next() % bound); }
  int below(int bound) { return static_cast<int>(below(static_cast<std::size_t>(bound))); }

  /// From `first` to `last`, both included.
  std::size_t between(std::size_t first, std::size_t last) { return first + below(last - first + 1); }

  bool chance(std::size_t percent) { return below(std::size_t{100}) < percent; }

  template <class List>
  typename List::value_type pick(const List& list) {
    return list[below(list.size())];
  }

 private:
  std::uint64_t state_;
};

}  // namespace differential

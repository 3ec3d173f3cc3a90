// Rounds of random operations: which, of what size, where in memory, in which groups and streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "differential/dice.h"
#include "differential/operation.h"

namespace differential {

struct Limits {
  std::size_t arena = 0;               ///< bytes that the buffers of a rank may take in a round
  std::size_t longest = 0;             ///< bytes that one operation may take of an arena
  std::size_t captured = 25;           ///< rounds that are captured, of a hundred
  std::vector<std::size_t> borders{};  ///< bytes around which sizes are interesting: slots, lines, chunks
};

/// The rounds of one run: the same for a seed, a layout and limits. Not for several threads at once.
class Generator {
 public:
  Generator(std::uint64_t seed, const Layout& layout, Limits limits);
  Round next();

 private:
  Group makeGroup(std::size_t index);
  Operation makeOperation();
  Operation makeMessages(Operation operation);
  std::size_t makeCount(std::size_t size, std::size_t blocks);
  std::size_t room() const;
  bool placeAfter(Operation& operation, std::size_t bytes, bool inPlace);
  void place(Operation& operation);
  void placeAnew(Operation& operation, const std::vector<std::size_t>& sent, const std::vector<std::size_t>& received,
                 bool inPlace);
  Span allocate(int rank, std::size_t bytes, std::size_t size);
  void fill();
  void fillInputs(const Operation& operation, int ranks);

  /// Results of an operation that a later group may take for its input.
  struct Result {
    std::size_t group;
    int comm;
    int stream;
    std::vector<Span> spans;
  };

  Dice dice_;
  const Layout& layout_;
  Limits limits_;
  std::size_t operations_ = 0;
  Round round_;
  std::size_t group_ = 0;          ///< in the round, of those that are being made
  std::vector<int> comms_;         ///< that operations of this group may have
  std::vector<std::size_t> used_;  ///< bytes of each rank's arena
  std::vector<Result> results_;
  std::vector<std::size_t> continued_;  ///< numbers of operations whose input is another's result
  std::size_t rounds_ = 0;
};

}  // namespace differential

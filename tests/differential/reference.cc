#include "differential/reference.h"

#include <cstring>

#include "bench/datatypes.h"
#include "differential/numbers.h"

namespace differential {
namespace {

using Bytes = std::vector<std::uint8_t>;

class Ranks {
 public:
  Ranks(const Operation& operation, const Layout& layout, Memory& memory)
      : operation_(operation), members_(layout.comms[static_cast<std::size_t>(operation.comm)]), memory_(memory) {}

  std::size_t size() const { return members_.size(); }
  int world(std::size_t rank) const { return members_[rank]; }
  std::uint8_t* at(std::size_t rank, std::size_t offset) {
    return memory_[static_cast<std::size_t>(members_[rank])].data() + offset;
  }
  /// Part of what a rank puts in: `bytes` bytes from `first`.
  Bytes input(std::size_t rank, std::size_t first, std::size_t bytes) {
    const std::uint8_t* from = at(rank, operation_.send[rank].offset + first);
    return {from, from + bytes};
  }
  /// What a rank puts in, of all ranks.
  std::vector<Bytes> inputs(std::size_t bytes) {
    std::vector<Bytes> all;
    for (std::size_t r = 0; r < size(); ++r) all.push_back(input(r, 0, bytes));
    return all;
  }
  void output(std::size_t rank, std::size_t first, const std::uint8_t* data, std::size_t bytes) {
    if (bytes > 0) std::memcpy(at(rank, operation_.recv[rank].offset + first), data, bytes);
  }

 private:
  const Operation& operation_;
  const std::vector<int>& members_;
  Memory& memory_;
};

void reduceAll(const Operation& operation, Ranks& ranks, std::vector<Inexact>& inexact) {
  const std::size_t size = bench::typeSize(operation.type);
  const bool scatters = operation.func == Func::ReduceScatter;
  const std::size_t total = operation.count * (scatters ? ranks.size() : 1);
  std::vector<const std::uint8_t*> factors;
  for (std::size_t r = 0; r < operation.scalar.size(); ++r) factors.push_back(ranks.at(r, operation.scalar[r].offset));
  Bytes result(total * size);
  std::vector<double> values;
  reduce(operation.type, operation.op, ranks.inputs(total * size), factors, total, result.data(), &values);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (operation.func == Func::Reduce && r != static_cast<std::size_t>(operation.root)) continue;
    const std::size_t first = scatters ? r * operation.count : 0;
    if (values.empty()) {
      ranks.output(r, 0, result.data() + first * size, operation.count * size);
      continue;
    }
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
    inexact.push_back({ranks.world(r),
                       {operation.recv[r].offset, operation.count * size},
                       operation.type,
                       static_cast<int>(ranks.size()),
                       {begin, begin + static_cast<std::ptrdiff_t>(operation.count)}});
  }
}

/// Block j of what rank i puts in comes out as block i of rank j, for the pairs that the function joins.
void exchangeBlocks(const Operation& operation, Ranks& ranks) {
  const std::size_t block = operation.count * bench::typeSize(operation.type);
  const auto root = static_cast<std::size_t>(operation.root);
  struct Move {
    std::size_t to;
    std::size_t place;
    Bytes data;
  };
  std::vector<Move> moves;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    switch (operation.func) {
      case Func::Broadcast:
        moves.push_back({i, 0, ranks.input(root, 0, block)});
        break;
      case Func::Gather:
        moves.push_back({root, i, ranks.input(i, 0, block)});
        break;
      case Func::Scatter:
        moves.push_back({i, 0, ranks.input(root, i * block, block)});
        break;
      default:
        for (std::size_t j = 0; j < ranks.size(); ++j) {
          const std::size_t first = operation.func == Func::AlltoAll ? j * block : 0;
          moves.push_back({j, i, ranks.input(i, first, block)});
        }
    }
  }
  for (const Move& move : moves) ranks.output(move.to, move.place * block, move.data.data(), block);
}

void deliver(const Operation& operation, Ranks& ranks) {
  for (const Message& message : operation.messages) {
    const auto from = static_cast<std::size_t>(message.from);
    const auto to = static_cast<std::size_t>(message.to);
    if (message.source.bytes == 0) continue;
    std::memmove(ranks.at(to, message.target.offset), ranks.at(from, message.source.offset), message.source.bytes);
  }
}

}  // namespace

void carryOut(const Operation& operation, const Layout& layout, Memory& memory, std::vector<Inexact>& inexact) {
  Ranks ranks(operation, layout, memory);
  if (operation.func == Func::Messages) {
    deliver(operation, ranks);
  } else if (isReduction(operation.func)) {
    reduceAll(operation, ranks, inexact);
  } else {
    exchangeBlocks(operation, ranks);
  }
}

}  // namespace differential

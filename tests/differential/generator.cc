#include "differential/generator.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "bench/datatypes.h"
#include "differential/numbers.h"
#include "differential/reference.h"

namespace differential {
namespace {

constexpr std::size_t kGuard = 96;  // bytes between buffers, at least

bool isRooted(Func func) {
  return func == Func::Reduce || func == Func::Broadcast || func == Func::Gather || func == Func::Scatter;
}

/// Blocks of `count` elements that a rank puts in, and that it receives; a rooted one's root, where `isRoot`.
std::pair<std::size_t, std::size_t> blocksOf(Func func, std::size_t ranks, bool isRoot) {
  switch (func) {
    case Func::ReduceScatter:
      return {ranks, 1};
    case Func::AllGather:
      return {1, ranks};
    case Func::AlltoAll:
      return {ranks, ranks};
    case Func::Reduce:
      return {1, isRoot ? 1 : 0};
    case Func::Broadcast:
      return {isRoot ? 1 : 0, 1};
    case Func::Gather:
      return {1, isRoot ? ranks : 0};
    case Func::Scatter:
      return {isRoot ? ranks : 0, 1};
    default:
      return {1, 1};
  }
}

}  // namespace

Generator::Generator(std::uint64_t seed, const Layout& layout, Limits limits)
    : dice_(seed), layout_(layout), limits_(std::move(limits)) {}

Round Generator::next() {
  round_ = Round{};
  round_.number = rounds_++;
  used_.assign(static_cast<std::size_t>(layout_.ranks), 0);
  results_.clear();
  continued_.clear();
  const std::size_t groups = dice_.between(1, 6);
  for (std::size_t i = 0; i < groups; ++i) round_.groups.push_back(makeGroup(i));
  if (dice_.chance(limits_.captured))
    round_.capture = dice_.pick(std::array{Capture::Global, Capture::ThreadLocal, Capture::Relaxed});
  fill();
  return std::move(round_);
}

Group Generator::makeGroup(std::size_t index) {
  Group group;
  const std::size_t operations = dice_.chance(40) ? 1 : dice_.between(2, 6);
  group_ = index;
  comms_.clear();  // blocking communicators and others are not allowed in one group
  const bool blocking = dice_.pick(layout_.blocking);
  for (std::size_t c = 0; c < layout_.comms.size(); ++c) {
    if (layout_.blocking[c] == blocking) comms_.push_back(static_cast<int>(c));
  }
  for (std::size_t i = 0; i < operations; ++i) group.operations.push_back(makeOperation());
  // A group starts its communicators in the order in which a rank calls them, which must be the same on all ranks: a
  // rank without a message of its own makes no call.
  const auto sends = [](const Operation& operation) { return operation.func == Func::Messages; };
  if (std::any_of(group.operations.begin(), group.operations.end(), sends)) {
    std::stable_sort(group.operations.begin(), group.operations.end(),
                     [](const Operation& a, const Operation& b) { return a.comm < b.comm; });
  }
  group.bare = operations == 1 && group.operations.front().func != Func::Messages && dice_.chance(70);
  group.nested = dice_.chance(10);
  group.byRank = dice_.chance(50);
  return group;
}

std::size_t Generator::room() const {
  const std::size_t most = *std::max_element(used_.begin(), used_.end());
  return most + 4096 < limits_.arena ? std::min(limits_.longest, limits_.arena - most - 4096) : 0;
}

std::size_t Generator::makeCount(std::size_t size, std::size_t blocks) {
  const std::size_t most = room() / (2 * blocks) / size;
  const std::size_t dice = dice_.below(std::size_t{100});
  std::size_t count = 0;
  if (dice < 6) {
    count = 0;
  } else if (dice < 14) {
    count = 1;
  } else if (dice < 40) {
    count = dice_.between(2, 64);
  } else if (dice < 60) {
    count = dice_.between(65, 1500);
  } else if (dice < 90) {
    // Around a border, or a multiple of one, of what a rank sends or of what all ranks send.
    const std::size_t border = dice_.pick(limits_.borders) * dice_.pick(std::array<std::size_t, 5>{1, 1, 2, 3, 8});
    const std::size_t around = border / size / dice_.pick(std::array<std::size_t, 2>{1, blocks});
    count = around + dice_.below(std::size_t{5});
    count = count > 2 ? count - 2 : count;
  } else {
    count = dice_.below(most + 1);
  }
  return count <= most ? count : dice_.below(std::min<std::size_t>(most, 700) + 1);
}

Operation Generator::makeOperation() {
  Operation operation;
  operation.number = operations_++;
  operation.func = static_cast<Func>(dice_.below(kFuncs));
  operation.comm = dice_.pick(comms_);
  operation.stream = dice_.chance(60) ? 0 : dice_.below(layout_.streams);
  operation.type = static_cast<ncclDataType_t>(dice_.below(static_cast<int>(ncclNumTypes)));
  const std::size_t ranks = layout_.comms[static_cast<std::size_t>(operation.comm)].size();
  if (operation.func == Func::Messages) return makeMessages(std::move(operation));
  operation.op = static_cast<ncclRedOp_t>(dice_.below(static_cast<int>(ncclNumOps) + 1));
  if (isRooted(operation.func)) operation.root = dice_.below(static_cast<int>(ranks));
  operation.scalarOnDevice = dice_.chance(50);
  const bool isLong =
      operation.func != Func::AllReduce && operation.func != Func::Reduce && operation.func != Func::Broadcast;
  operation.count = makeCount(bench::typeSize(operation.type), isLong ? ranks : 1);
  place(operation);
  return operation;
}

Operation Generator::makeMessages(Operation operation) {
  const auto& members = layout_.comms[static_cast<std::size_t>(operation.comm)];
  const int ranks = static_cast<int>(members.size());
  const std::size_t size = bench::typeSize(operation.type);
  operation.receivesFirst = dice_.chance(50);
  const std::size_t messages = dice_.between(1, 2 * members.size() + 1);
  for (std::size_t i = 0; i < messages; ++i) {
    Message message{dice_.below(ranks), dice_.below(ranks), {}, {}};
    const std::size_t bytes = makeCount(size, messages) * size;
    message.source = allocate(members[static_cast<std::size_t>(message.from)], bytes, size);
    message.target = allocate(members[static_cast<std::size_t>(message.to)], bytes, size);
    operation.messages.push_back(message);
  }
  return operation;
}

/// A place of its own, aligned as the type needs and no better.
Span Generator::allocate(int rank, std::size_t bytes, std::size_t size) {
  std::size_t& used = used_[static_cast<std::size_t>(rank)];
  std::size_t offset = used + kGuard;
  offset = dice_.chance(40) ? (offset + 15) / 16 * 16
                            : (offset + size - 1) / size * size + dice_.below(std::size_t{16}) * size;
  used = offset + bytes;
  return {offset, bytes};
}

/// Gives the operation an earlier group's results for its input, if there are any that fit.
bool Generator::placeAfter(Operation& operation, std::size_t bytes, bool inPlace) {
  const std::size_t size = bench::typeSize(operation.type);
  const auto fits = [&](const Result& result) {
    const auto fit = [&](const Span& span) {
      return span.offset % size == 0 && (inPlace ? span.bytes == bytes : span.bytes >= bytes);
    };
    return result.group < group_ && result.comm == operation.comm && result.stream == operation.stream &&
           std::all_of(result.spans.begin(), result.spans.end(), fit);
  };
  const auto found = std::find_if(results_.begin(), results_.end(), fits);
  if (found == results_.end()) return false;
  operation.send = found->spans;
  for (Span& span : operation.send) span.bytes = bytes;
  results_.erase(found);
  continued_.push_back(operation.number);
  return true;
}

/// Buffers of their own, or one for both on the ranks that work in place. Where what a rank puts in is a block of what
/// it receives, or the other way round, it is the rank's.
void Generator::placeAnew(Operation& operation, const std::vector<std::size_t>& sent,
                          const std::vector<std::size_t>& received, bool inPlace) {
  const auto& members = layout_.comms[static_cast<std::size_t>(operation.comm)];
  const std::size_t size = bench::typeSize(operation.type);
  const bool mixed = inPlace && dice_.chance(30);
  for (std::size_t r = 0; r < members.size(); ++r) {
    if (!inPlace || (mixed && dice_.chance(50))) {
      operation.send[r] = allocate(members[r], sent[r], size);
      operation.recv[r] = allocate(members[r], received[r], size);
      continue;
    }
    const Span both = allocate(members[r], std::max(sent[r], received[r]), size);
    const std::size_t block = r * operation.count * size;
    operation.send[r] = {both.offset + (sent[r] < received[r] && sent[r] > 0 ? block : 0), sent[r]};
    operation.recv[r] = {both.offset + (received[r] < sent[r] && received[r] > 0 ? block : 0), received[r]};
  }
}

void Generator::place(Operation& operation) {
  const auto& members = layout_.comms[static_cast<std::size_t>(operation.comm)];
  const std::size_t size = bench::typeSize(operation.type);
  const std::size_t ranks = members.size();
  operation.send.resize(ranks);
  operation.recv.resize(ranks);
  std::vector<std::size_t> sent(ranks);
  std::vector<std::size_t> received(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto blocks = blocksOf(operation.func, ranks, static_cast<int>(r) == operation.root);
    sent[r] = blocks.first * operation.count * size;
    received[r] = blocks.second * operation.count * size;
  }
  const bool copies = !isReduction(operation.func);
  const bool anyBits = copies || !bench::isFloating(operation.type);
  const bool inPlace = operation.func != Func::AlltoAll && dice_.chance(35);
  const std::size_t most = *std::max_element(sent.begin(), sent.end());
  const bool continues = anyBits && operation.count > 0 && dice_.chance(50) &&
                         placeAfter(operation, most, inPlace && operation.func == Func::AllReduce);
  if (continues && inPlace && operation.func == Func::AllReduce) {
    operation.recv = operation.send;
  } else if (continues) {
    for (std::size_t r = 0; r < ranks; ++r) {
      operation.send[r].bytes = sent[r];
      operation.recv[r] = allocate(members[r], received[r], size);
    }
  } else {
    placeAnew(operation, sent, received, inPlace);
  }
  if (!copies && operation.op == kPreMulSum)
    for (const int rank : members) operation.scalar.push_back(allocate(rank, size, size));
  const bool forAll = operation.func != Func::Reduce && operation.func != Func::Gather;
  const bool exact = copies || isExact(operation.type, operation.op, static_cast<int>(ranks));
  if (forAll && exact && operation.count > 0)
    results_.push_back({group_, operation.comm, operation.stream, operation.recv});
}

/// Writes the inputs of an operation that begins with them, and the factors.
void Generator::fillInputs(const Operation& operation, int ranks) {
  const auto& members = layout_.comms[static_cast<std::size_t>(operation.comm)];
  const std::size_t size = bench::typeSize(operation.type);
  const bool continues = std::find(continued_.begin(), continued_.end(), operation.number) != continued_.end();
  for (std::size_t r = 0; r < members.size() && isReduction(operation.func); ++r) {
    auto& memory = round_.before[static_cast<std::size_t>(members[r])];
    if (!operation.scalar.empty()) fillFactor(dice_, operation.type, memory.data() + operation.scalar[r].offset);
    if (continues) continue;
    const Span& span = operation.send[r];
    fillInput(dice_, operation.type, operation.op, ranks, span.bytes / size, memory.data() + span.offset);
  }
}

/// All memory first has random bits: copies take them for their input, and what is in between must keep them.
void Generator::fill() {
  for (const std::size_t used : used_) {
    auto& memory = round_.before.emplace_back((used + kGuard + 7) / 8 * 8);
    for (std::size_t at = 0; at < memory.size(); at += 8) {
      const std::uint64_t bits = dice_.next();
      std::memcpy(memory.data() + at, &bits, sizeof bits);
    }
  }
  for (const Group& group : round_.groups) {
    for (const Operation& operation : group.operations)
      fillInputs(operation, static_cast<int>(layout_.comms[static_cast<std::size_t>(operation.comm)].size()));
  }
  round_.after = round_.before;
  for (const Group& group : round_.groups) {
    for (const Operation& operation : group.operations) carryOut(operation, layout_, round_.after, round_.inexact);
  }
}

}  // namespace differential

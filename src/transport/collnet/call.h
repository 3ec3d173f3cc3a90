// What a step has the network do: from the words of a kernel to the network's calls. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "device/collnet_view.h"
#include "nccl.h"

namespace tutti::collnet {

/// The words that a head's kernel has written for a step (device::CollNetWords).
struct CallWords {
  std::uint64_t call = 0;
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::uint64_t perNode = 0;
  std::uint64_t sendFrom = 0;
  std::uint64_t recvTo = 0;
};
/// Reads them, each once; only after the tail that says they are there.
CallWords wordsOf(const device::CollNetWords& words, std::uint64_t step);

/// What words may say at most.
struct CallBounds {
  std::uint64_t nodes = 0;
  std::uint64_t areaBytes = 0;  ///< of a step of all lanes
};
/// Why no kernel can mean that, for people; empty: one can. Without bytes there is no call, and the rest says nothing.
std::string nonsenseIn(const CallWords& words, const CallBounds& bounds);

/// "AllReduce float32 sum of 4096 bytes"; also of words that make no sense.
std::string callText(std::uint64_t call, std::uint64_t bytes);

/// Bytes from the begin of a step's slots.
struct StepRange {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const StepRange&, const StepRange&) = default;
};

/// A step's call that makes sense.
class StepCall {
 public:
  StepCall() = default;
  explicit StepCall(const CallWords& words) : words_(words), call_(device::CollNetCall::of(words.call)) {}

  device::CollNetFunc func() const { return call_.func; }
  ncclDataType_t type() const { return static_cast<ncclDataType_t>(call_.type); }
  ncclRedOp_t op() const { return static_cast<ncclRedOp_t>(call_.op); }
  std::uint64_t begin() const { return words_.begin; }
  std::uint64_t bytes() const { return words_.bytes; }
  std::uint64_t perNode() const { return words_.perNode; }
  const CallWords& words() const { return words_; }

  /// What one call of the network does from `offset` on, where it takes `most` bytes: never a part of an element, the
  /// same on all nodes. `most` has room for any element.
  StepRange pieceAt(std::uint64_t offset, std::uint64_t most) const;
  /// What of a piece of the window is the node's own; at the begin of the slots where that is nothing.
  StepRange ownPart(StepRange piece, std::uint64_t node) const;
  /// What of the whole step the node sends, and receives.
  StepRange sent(std::uint64_t node) const;
  StepRange received(std::uint64_t node) const;

 private:
  CallWords words_;
  device::CollNetCall call_{};
};

}  // namespace tutti::collnet

// What a node and the switch say to each other over TCP. Real switches have a protocol of their own; a plugin hides it.
//
//   node                         switch
//   Join {group, node, …}   ->                    the node belongs to a group of so many nodes
//                           <-   Joined           … when all of them have come, or Failed at the deadline
//   Operation {…} + data    ->                    numbered 1, 2, 3 …; the same on all nodes, who may be ahead
//                           <-   Result {…} + data
//   Bye                     ->                    no operation of this node will come any more
//                           <-   Failed + text    at any time: the group has ended, and why
//
// Everybody may send AskStatistics instead of Join, and gets Statistics with text. Numbers are little endian.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include "nccl_net.h"

namespace switch_collnet {

static_assert(std::endian::native == std::endian::little, "frames are sent as they lie in memory");

enum class Kind : std::uint32_t {
  Join = 1,
  Joined,
  Operation,
  Result,
  Bye,
  Failed,
  AskStatistics,
  Statistics,
  Hello,    ///< first word of a connection between two nodes (net.h)
  Message,  ///< what such a connection carries
};

enum class Collective : std::uint32_t { AllReduce, AllGather, ReduceScatter };

/// One collective, as every node of a group describes it. An AllReduce is a window of bytes that all nodes have; the
/// others see a window [windowOffset, windowOffset + windowBytes) of all nodes' bytesPerRank bytes, node after node.
struct Operation {
  std::uint64_t sequence = 0;
  Collective collective = Collective::AllReduce;
  std::int32_t type = ncclInt8;
  std::int32_t op = ncclSum;
  std::uint32_t unused = 0;
  std::uint64_t bytesPerRank = 0;
  std::uint64_t windowOffset = 0;
  std::uint64_t windowBytes = 0;

  bool operator==(const Operation&) const = default;
};

/// In front of everything; `payload` bytes follow.
struct Frame {
  std::uint32_t magic = kMagic;
  Kind kind = Kind::Join;
  std::uint64_t payload = 0;
  Operation operation;  ///< of Operation and Result

  static constexpr std::uint32_t kMagic = 0x4c4f4353;  // "SCOL"
};
static_assert(sizeof(Operation) == 48 && sizeof(Frame) == 64);

/// Of a group: made from what all of its nodes know and nobody else.
struct GroupKey {
  std::uint64_t word[2] = {0, 0};
  auto operator<=>(const GroupKey&) const = default;
};

/// Payload of Join.
struct Join {
  GroupKey group;
  std::uint32_t nodes = 0;
  std::uint32_t node = 0;
  std::uint32_t joinMs = 0;       ///< how long the first node waits for the last one
  std::uint32_t operationMs = 0;  ///< how long an operation waits for the last node
  char name[96] = {};             ///< for messages: host, process, device
};

/// Of a node's own bytesPerRank bytes those that lie in the window.
struct Range {
  std::uint64_t begin = 0;  ///< from the beginning of the window
  std::uint64_t bytes = 0;
};
inline Range ownPart(const Operation& operation, std::uint64_t node) {
  const std::uint64_t end = operation.windowOffset + operation.windowBytes;
  const std::uint64_t from = std::clamp(node * operation.bytesPerRank, operation.windowOffset, end);
  const std::uint64_t to = std::clamp((node + 1) * operation.bytesPerRank, operation.windowOffset, end);
  return {from - operation.windowOffset, to - from};
}

/// How many bytes a node sends for an operation, and how many it gets.
inline std::uint64_t bytesToSwitch(const Operation& operation, std::uint64_t node) {
  return operation.collective == Collective::AllGather ? ownPart(operation, node).bytes : operation.windowBytes;
}
inline std::uint64_t bytesFromSwitch(const Operation& operation, std::uint64_t node) {
  return operation.collective == Collective::ReduceScatter ? ownPart(operation, node).bytes : operation.windowBytes;
}

/// A program may send what it likes: no frame is longer than this.
inline constexpr std::uint64_t kMostPayload = std::uint64_t{1} << 31;

/// 0: no such type.
inline std::size_t bytesOfType(int type) {
  static constexpr std::size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  static_assert(sizeof(kBytes) / sizeof(kBytes[0]) == ncclNumTypes);
  return type >= 0 && type < ncclNumTypes ? kBytes[type] : 0;
}
/// As users write it in SWITCH_COLLNET_FAULTS.
inline const char* nameOfType(int type) {
  static constexpr const char* kNames[] = {"int8",    "uint8",   "int32",   "uint32",   "int64",      "uint64",
                                           "float16", "float32", "float64", "bfloat16", "float8e4m3", "float8e5m2"};
  return type >= 0 && type < ncclNumTypes ? kNames[type] : "no type";
}
inline bool reduces(int op) {
  return op == ncclSum || op == ncclProd || op == ncclMin || op == ncclMax;
}
inline const char* nameOfOp(int op) {
  switch (op) {
    case ncclSum:
      return "sum";
    case ncclProd:
      return "prod";
    case ncclMin:
      return "min";
    case ncclMax:
      return "max";
    default:
      return "no operation of a switch";
  }
}

/// For messages: "AllReduce 7 of 4096 bytes, float32, sum".
inline std::string describe(const Operation& o) {
  static constexpr const char* kNames[] = {"AllReduce", "AllGather", "ReduceScatter"};
  std::string text = o.collective <= Collective::ReduceScatter ? kNames[static_cast<int>(o.collective)] : "unknown";
  const auto number = [](std::uint64_t n) { return std::to_string(n); };
  text.append(" ").append(number(o.sequence)).append(" of ").append(number(o.windowBytes)).append(" bytes");
  if (o.collective != Collective::AllReduce) {
    text.append(" at ").append(number(o.windowOffset)).append(", ").append(number(o.bytesPerRank)).append(" a node");
  }
  if (o.collective == Collective::AllGather) return text;
  return text.append(", ").append(nameOfType(o.type)).append(", ").append(nameOfOp(o.op));
}

}  // namespace switch_collnet

#include "transport/collnet/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "plugin/network/collnet.h"
#include "transport/net/lane/counters.h"

namespace tutti::collnet {
namespace {

using device::CollNetFunc;

constexpr std::array<const char*, 3> kFuncs{"AllReduce", "AllGather", "ReduceScatter"};  // by CollNetFunc
constexpr std::array<const char*, ncclNumTypes> kTypes{"int8",    "uint8",    "int32",      "uint32",
                                                       "int64",   "uint64",   "float16",    "float32",
                                                       "float64", "bfloat16", "float8e4m3", "float8e5m2"};
constexpr std::array<const char*, 4> kOps{"sum", "product", "maximum", "minimum"};  // what networks know

template <std::size_t kNames>
std::string nameOf(const std::array<const char*, kNames>& names, unsigned number, const char* kind) {
  return number < kNames ? names[number] : fmt::format("{} {}", kind, number);
}

/// 0: no such type.
std::uint64_t elementBytes(device::CollNetCall call) {
  return call.type < ncclNumTypes ? plugin::collNetTypeBytes(static_cast<ncclDataType_t>(call.type)) : 0;
}

/// Of what travels in windows of the nodes' blocks.
std::string nonsenseInWindow(const CallWords& words, const CallBounds& bounds, std::uint64_t element) {
  if (words.perNode == 0 || words.perNode > UINT64_MAX / bounds.nodes) {
    return fmt::format("a window of {} nodes' blocks of {} bytes", bounds.nodes, words.perNode);
  }
  const std::uint64_t all = words.perNode * bounds.nodes;
  if (words.bytes > all || words.begin > all - words.bytes) {
    return fmt::format("a window of {} bytes from {} on, of {} nodes' blocks of {} bytes", words.bytes, words.begin,
                       bounds.nodes, words.perNode);
  }
  if (words.begin % element != 0 || words.perNode % element != 0) {
    return fmt::format("a window from {} on, of blocks of {} bytes, which are no whole elements", words.begin,
                       words.perNode);
  }
  return {};
}

}  // namespace

CallWords wordsOf(const device::CollNetWords& words, std::uint64_t step) {
  const auto read = [step](const device::AskWords& of) { return net::loadCounter(of.of(step)); };
  return {read(words.call),    read(words.begin),    read(words.bytes),
          read(words.perNode), read(words.sendFrom), read(words.recvTo)};
}

std::string callText(std::uint64_t word, std::uint64_t bytes) {
  const device::CollNetCall call = device::CollNetCall::of(word);
  std::string text = nameOf(kFuncs, static_cast<unsigned>(call.func), "function");
  if (call.func != CollNetFunc::AllGather) {
    text += fmt::format(" {} {}", nameOf(kTypes, call.type, "type"), nameOf(kOps, call.op, "operation"));
  }
  return text + fmt::format(" of {} bytes", bytes);
}

std::string nonsenseIn(const CallWords& words, const CallBounds& bounds) {
  if (words.bytes == 0) return {};
  const device::CollNetCall call = device::CollNetCall::of(words.call);
  const std::uint64_t element = elementBytes(call);
  const bool reduces = call.func != CollNetFunc::AllGather;
  const bool known = call.word() == words.call && static_cast<std::size_t>(call.func) < kFuncs.size() && element != 0 &&
                     (!reduces || call.op < kOps.size());
  if (!known) return fmt::format("the call {:#x}, which is none", words.call);
  if (words.bytes > bounds.areaBytes) {
    return fmt::format("{} bytes, where the slots of all lanes have {}", words.bytes, bounds.areaBytes);
  }
  if (words.bytes % element != 0) return fmt::format("{} bytes, which are no whole elements", words.bytes);
  return call.func == CollNetFunc::AllReduce ? std::string() : nonsenseInWindow(words, bounds, element);
}

StepRange StepCall::pieceAt(std::uint64_t offset, std::uint64_t most) const {
  // Whole pages where there is room for one: networks like addresses that are aligned.
  constexpr std::uint64_t kPage = 4096;
  const std::uint64_t unit = most >= kPage ? kPage : elementBytes(call_);
  return {offset, std::min(words_.bytes - offset, most / unit * unit)};
}

StepRange StepCall::ownPart(StepRange piece, std::uint64_t node) const {
  const std::uint64_t pieceBegin = words_.begin + piece.offset;
  const std::uint64_t begin = std::max(pieceBegin, node * words_.perNode);
  const std::uint64_t end = std::min(pieceBegin + piece.bytes, (node + 1) * words_.perNode);
  return begin < end ? StepRange{begin - words_.begin, end - begin} : StepRange{};
}

StepRange StepCall::sent(std::uint64_t node) const {
  const StepRange all{0, words_.bytes};
  return call_.func == CollNetFunc::AllGather ? ownPart(all, node) : all;
}

StepRange StepCall::received(std::uint64_t node) const {
  const StepRange all{0, words_.bytes};
  return call_.func == CollNetFunc::ReduceScatter ? ownPart(all, node) : all;
}

}  // namespace tutti::collnet

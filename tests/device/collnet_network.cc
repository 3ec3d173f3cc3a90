#include "device/collnet_network.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "device/collnet_cut.h"
#include "device/kernels/kernel_name.h"
#include "device/number/reduce_op.h"
#include "device/values.h"

namespace tutti::device::test {
namespace {

std::uint64_t acquired(Counter* counter) {
  return std::atomic_ref(counter->value).load(std::memory_order_acquire);
}
void release(Counter* counter, std::uint64_t value) {
  std::atomic_ref(counter->value).store(value, std::memory_order_release);
}
std::uint64_t wordOf(AskWords& words, std::uint64_t step) {
  return std::atomic_ref(*words.of(step)).load(std::memory_order_relaxed);
}

/// What no result is: what a slot holds where nothing was put.
constexpr int kRubbish = 0xdb;

std::byte* sendArea(const CollNetConn& lane, std::uint64_t step) {
  return lane.sendSlots + step % kSteps * lane.areaBytes;
}
std::byte* recvArea(const CollNetConn& lane, std::uint64_t step) {
  return lane.recvSlots + step % kSteps * lane.areaBytes;
}

/// into = into + more
template <class T>
void combine(DevOp op, std::byte* into, const std::byte* more, std::uint64_t bytes) {
  using One = Pack<T, sizeof(T)>;
  const RuntimeOp<T, false> how(op, {});
  for (std::uint64_t at = 0; at < bytes; at += sizeof(T)) {
    One a, b;
    std::memcpy(&a, into + at, sizeof(T));
    std::memcpy(&b, more + at, sizeof(T));
    a = how.combine(a, b);
    std::memcpy(into + at, &a, sizeof(T));
  }
}

}  // namespace

bool CollNetNetwork::ready(const Calls& calls) {
  for (const auto& lanes : calls.set) {
    for (const CollNetConn& lane : lanes) {
      if (acquired(lane.sendTail) - calls.step - 1 >= kSteps) return false;
      if (calls.step - acquired(lane.recvHead) >= kSteps) return false;
    }
  }
  return true;
}

CollNetNetwork::Said CollNetNetwork::saidBy(const CollNetConn& lane, std::uint64_t step) {
  return {wordOf(lane.words->call, step), wordOf(lane.words->begin, step), wordOf(lane.words->bytes, step),
          wordOf(lane.words->perNode, step)};
}

bool CollNetNetwork::agreed(const Calls& calls, Said& said) {
  said = saidBy(calls.set[0][0], calls.step);
  for (const auto& lanes : calls.set) {
    if (saidBy(lanes[0], calls.step) != said)
      refuse("nodes ask for different things in step " + std::to_string(calls.step));
    if (said.bytes > lanes[0].areaBytes) refuse("more than an area holds: " + std::to_string(said.bytes));
  }
  const CollNetCall call = CollNetCall::of(said.call);
  const unsigned element = typeBytes(static_cast<ncclDataType_t>(call.type));
  if (element == 0 || call.op > ncclMin || call.func > CollNetFunc::ReduceScatter) {
    refuse("no call: " + std::to_string(said.call));
  } else if (said.bytes % element != 0 || said.begin % element != 0) {
    refuse("parts of elements");
  }
  const bool blocks = call.func != CollNetFunc::AllReduce;
  if (blocks && said.begin + said.bytes > calls.set.size() * said.perNode) refuse("beyond the last node's block");
  return wrong_.empty();
}

/// Where a node's content of a step lies: `offset` in its slots, `into` what it sends of the window.
const std::byte* CollNetNetwork::sentAt(const CollNetConn& lane, std::uint64_t step, std::uint64_t offset,
                                        std::uint64_t into) {
  const std::uint64_t from = wordOf(lane.words->sendFrom, step);
  if (from == 0) return sendArea(lane, step) + offset;
  ++sentFrom_;
  return reinterpret_cast<const std::byte*>(from) + into;
}

std::byte* CollNetNetwork::receivedAt(const CollNetConn& lane, std::uint64_t step, std::uint64_t offset,
                                      std::uint64_t into) {
  const std::uint64_t to = wordOf(lane.words->recvTo, step);
  if (to == 0) return recvArea(lane, step) + offset;
  ++receivedInto_;
  return reinterpret_cast<std::byte*>(to) + into;
}

/// What all nodes have sent in a part of the step's window, in the order of nodes.
std::vector<std::byte> CollNetNetwork::reduced(const Calls& calls, const CollNetCall& call, std::uint64_t offset,
                                               std::uint64_t bytes) {
  std::vector<std::byte> result(bytes);
  for (std::size_t node = 0; node < calls.set.size(); ++node) {
    const std::byte* sent = sentAt(calls.set[node][0], calls.step, offset, offset);
    if (node == 0) {
      std::memcpy(result.data(), sent, bytes);
    } else {
      withType(static_cast<ncclDataType_t>(call.type),
               [&]<class T>() { combine<T>(static_cast<DevOp>(call.op), result.data(), sent, bytes); });
    }
  }
  return result;
}

void CollNetNetwork::perform(const Calls& calls, const Said& said) {
  const CollNetCall call = CollNetCall::of(said.call);
  const Part window{said.begin, said.bytes};
  for (std::size_t node = 0; node < calls.set.size(); ++node) {
    const CollNetConn& lane = calls.set[node][0];
    std::memset(recvArea(lane, calls.step), kRubbish, lane.areaBytes);
  }
  if (call.func == CollNetFunc::AllReduce) {
    const std::vector<std::byte> result = reduced(calls, call, 0, said.bytes);
    for (const auto& lanes : calls.set) {
      std::memcpy(receivedAt(lanes[0], calls.step, 0, 0), result.data(), result.size());
    }
    return;
  }
  // All is sent before anything is received: it may lie in the same place.
  std::vector<std::vector<std::byte>> results;
  std::vector<Part> places;
  for (std::size_t node = 0; node < calls.set.size(); ++node) {
    const Part own = partInBlock(window, said.perNode, node);
    const Part place = places.emplace_back(Part{own.count == 0 ? 0 : own.begin - window.begin, own.count});
    std::vector<std::byte>& result = results.emplace_back();
    if (own.count == 0) continue;
    if (call.func == CollNetFunc::ReduceScatter) {
      result = reduced(calls, call, place.begin, place.count);
    } else {
      const std::byte* const sent = sentAt(calls.set[node][0], calls.step, place.begin, 0);
      result.assign(sent, sent + place.count);
    }
  }
  for (std::size_t from = 0; from < places.size(); ++from) {
    const Part& place = places[from];
    if (place.count == 0) continue;
    const auto give = [&](std::size_t node, std::uint64_t into) {
      std::memcpy(receivedAt(calls.set[node][0], calls.step, place.begin, into), results[from].data(), place.count);
    };
    if (call.func == CollNetFunc::ReduceScatter) give(from, 0);
    for (std::size_t node = 0; node < calls.set.size() && call.func == CollNetFunc::AllGather; ++node) {
      give(node, place.begin);
    }
  }
}

bool CollNetNetwork::move() {
  bool any = false;
  for (Calls& calls : calls_) {
    if (calls.freed != calls.step) {  // send slots are given back later than results come
      calls.freed = calls.step;
      for (const auto& lanes : calls.set) {
        std::memset(sendArea(lanes[0], calls.step - 1), kRubbish, lanes[0].areaBytes);
        for (const CollNetConn& lane : lanes) release(lane.sendHead, calls.step);
      }
      any = true;
    }
    Said said{};
    if (left_ == 0 || !ready(calls) || !agreed(calls, said)) continue;
    if (said.bytes > 0) perform(calls, said);
    ++calls.step;
    --left_;
    for (const auto& lanes : calls.set) {
      for (const CollNetConn& lane : lanes) release(lane.recvTail, calls.step);
    }
    any = true;
  }
  return any;
}

std::string CollNetNetwork::unfinished() const {
  for (const Calls& calls : calls_) {
    for (const auto& lanes : calls.set) {
      for (const CollNetConn& lane : lanes) {
        const std::string where =
            " of lane " + std::to_string(lane.lane) + " is not at step " + std::to_string(calls.step);
        if (acquired(lane.sendTail) != calls.step) return "sendTail" + where;
        if (acquired(lane.recvHead) != calls.step) return "recvHead" + where;
        if (lane.sendStep->value != calls.step) return "sendStep" + where;
        if (lane.recvStep->value != calls.step) return "recvStep" + where;
      }
    }
  }
  return {};
}

}  // namespace tutti::device::test

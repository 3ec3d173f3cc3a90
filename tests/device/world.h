// Several ranks' views built by hand in plain memory, so that kernels can be run without a communicator.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "device/packet_ll.h"
#include "device/policy.h"
#include "device/work.h"

namespace tutti::device::test {

struct WorldShape {
  int nRanks = 2;
  unsigned nChannels = 1;
  std::uint32_t slotBytes =
      1024;                     ///< Simple; LL has slots of twice this, LL128 of 16/15 of it: the same payload or more
  std::uint64_t firstStep = 0;  ///< where all counters start
  int treeArity = 3;            ///< children of a rank in the tree; odd channels have the tree upside down
  bool pulls = false;  ///< buffers are read (`apart`: by the network, and written) in place, by the Simple protocol
  std::uint32_t pullLeast = 0;  ///< … if there is so much of them
  bool tells = false;           ///< both ends say how much of a slot is content, as for a network
  bool apart = false;           ///< the ends of a connection have memory of their own each: somebody moves slots
  std::uint32_t sharedSlots =
      0;                        ///< with `apart`: those of all Mesh connections of a channel in one direction; 0: none
  std::uint64_t staleStep = 0;  ///< slots were last written in this step and the 7 after it; 0: before firstStep
};

/// Every pair of ranks is connected on every channel; the ring is 0, 1, 2, ….
class World {
 public:
  explicit World(const WorldShape& shape) : shape_(shape), ranks_(shape.nRanks) {
    if (shape.staleStep == 0 && shape.firstStep != 0) shape_.staleStep = shape.firstStep - kSteps;
    for (int r = 0; r < shape.nRanks; ++r) buildRank(r);
    for (unsigned c = 0; c < shape.nChannels; ++c) {
      for (int from = 0; from < shape.nRanks; ++from) {
        for (int to = 0; to < shape.nRanks; ++to) {
          for (int kind = 0; kind < kConnKinds; ++kind) connect(c, from, to, kind);
        }
      }
    }
  }

  /// Both ends of a connection, as their kernels see it.
  struct Pair {
    int from;
    int to;
    SendConn sender;
    RecvConn receiver;
  };
  const std::vector<Pair>& pairs() const { return pairs_; }

  /// Whether all that came over connections that share slots has been acknowledged: reports of stalls read that.
  bool acknowledgedShared() const {
    for (const Route& route : routes_) {
      if (*route.receiver.headOf(Protocol::Simple) != route.step) return false;
    }
    return true;
  }

  /// Does what a network does for connections that share slots: messages that were sent and asked for get over. Returns
  /// whether any did. For the thread that runs the kernels.
  bool moveShared() {
    bool any = false;
    for (Route& route : routes_) {
      while (move(route)) any = true;
    }
    return any;
  }
  const WorldShape& shape() const { return shape_; }
  const CommView* comm(int rank) const { return &ranks_[rank].view; }
  /// Gives a rank what its kernels know of a network that reduces; `view` must stay.
  void giveCollNet(int rank, const CollNetView* view) { ranks_[rank].view.collNet = view; }
  std::uint32_t* abortWord() { return &abortWord_; }
  std::uint32_t slotBytesOf(Protocol protocol) const {
    const std::uint32_t bytes = shape_.slotBytes;
    if (protocol == Protocol::LL) return 2 * bytes;
    if (protocol == Protocol::LL128) return (bytes * 16 / 15 + 1023) / 1024 * 1024;
    return bytes;
  }

 private:
  struct Rank {
    CommView view;
    std::vector<ChannelView> channels;
    std::vector<std::vector<SendConn>> send[kConnKinds];
    std::vector<std::vector<RecvConn>> recv[kConnKinds];
    std::vector<std::int32_t> ring;
  };
  using Counters = std::array<Counter, kProtocols>;
  struct alignas(128) Line {
    std::uint64_t word[16];
  };
  struct Connection {
    std::vector<Line> slots[kProtocols];
    alignas(64) Counters tail, head, sendStep, recvStep;
    Counter asked{};
    SlotWords addresses{};
    SendWords said{};
    RecvWords expected{};
  };

  /// Slots that connections share.
  struct Pool {
    std::vector<Line> slots;
    alignas(64) std::uint64_t taken = 0;
    alignas(64) std::uint64_t head = 0;
    std::vector<bool> back;  ///< behind a gap
  };
  /// A connection whose ends share slots with others.
  struct Route {
    SendConn sender;
    RecvConn receiver;
    Pool* from;
    std::uint64_t step;
  };

  Pool& poolOf(int rank, unsigned channel, bool sends) {
    Pool& pool = pools_[{rank, channel, sends}];
    pool.slots.resize(std::size_t{shape_.slotBytes} * shape_.sharedSlots / sizeof(Line));
    pool.back.resize(shape_.sharedSlots);
    return pool;
  }

  static std::byte* slotsOf(Pool& pool) { return reinterpret_cast<std::byte*>(pool.slots.data()); }
  void lend(Pool& pool, SendConn& view) const {
    view.slots[static_cast<int>(Protocol::Simple)] = slotsOf(pool);
    view.shared = {.taken = &pool.taken, .givenBack = &pool.head, .count = shape_.sharedSlots, .reserved = 0};
  }
  void lend(Pool& pool, RecvConn& view) const {
    view.slots[static_cast<int>(Protocol::Simple)] = slotsOf(pool);
    view.shared.taken = &pool.taken;
    view.shared.count = shape_.sharedSlots;
  }
  /// What others than kernels may read and write, where they pull.
  MemoryRange window() const { return {0, shape_.pulls ? ~std::uint64_t{0} : 0}; }

  template <class Conn>
  std::byte* placeOf(const Conn& view, std::uint64_t step) const {
    const std::uint64_t place = *view.words->place.of(step) % shape_.sharedSlots;
    return view.slots[static_cast<int>(Protocol::Simple)] + place * shape_.slotBytes;
  }

  void giveBack(Pool& pool, std::uint64_t place) const {
    pool.back[place % shape_.sharedSlots] = true;
    for (; pool.back[pool.head % shape_.sharedSlots]; ++pool.head) pool.back[pool.head % shape_.sharedSlots] = false;
  }

  bool move(Route& route) {
    const std::uint64_t step = route.step;
    if (*route.sender.tailOf(Protocol::Simple) == step) return false;
    if (!isSizeOf(*route.receiver.words->expected.of(step), step)) return false;
    const auto bytes = static_cast<std::uint32_t>(*route.sender.words->size[2].of(step));
    const std::uint64_t offered = route.sender.pull.addresses == nullptr ? 0 : *route.sender.pull.addresses->of(step);
    const std::uint64_t into = *route.receiver.words->into.of(step);
    std::memcpy(into == 0 ? placeOf(route.receiver, step) : reinterpret_cast<std::byte*>(into),
                offered == 0 ? placeOf(route.sender, step) : reinterpret_cast<const std::byte*>(offered), bytes);
    if (offered == 0) giveBack(*route.from, *route.sender.words->place.of(step));
    *route.receiver.tailOf(Protocol::Simple) = *route.sender.headOf(Protocol::Simple) = ++route.step;
    return true;
  }

  void buildRank(int r) {
    Rank& rank = ranks_[r];
    const int n = shape_.nRanks;
    for (int i = 0; i < n; ++i) rank.ring.push_back((r + i) % n);
    for (int kind = 0; kind < kConnKinds; ++kind) {
      rank.send[kind].assign(shape_.nChannels, std::vector<SendConn>(n));
      rank.recv[kind].assign(shape_.nChannels, std::vector<RecvConn>(n));
    }
    for (unsigned c = 0; c < shape_.nChannels; ++c) {
      rank.channels.push_back({.send = {rank.send[0][c].data(), rank.send[1][c].data()},
                               .recv = {rank.recv[0][c].data(), rank.recv[1][c].data()},
                               .ringRanks = rank.ring.data(),
                               .ringPrev = (r + n - 1) % n,
                               .ringNext = (r + 1) % n,
                               .tree = treeOf(r, c % 2 == 1)});
    }
    rank.view = {rank.channels.data(), &abortWord_, r, n, shape_.nChannels, 0};
  }

  TreeView treeOf(int rank, bool mirrored) const {
    const int n = shape_.nRanks;
    const int arity = shape_.treeArity;
    const auto name = [&](int place) { return mirrored ? n - 1 - place : place; };
    const int place = name(rank);
    TreeView tree{place == 0 ? -1 : name((place - 1) / arity), {-1, -1, -1}};
    for (int k = 0; k < arity && place * arity + 1 + k < n; ++k) tree.down[k] = name(place * arity + 1 + k);
    return tree;
  }

  void connect(unsigned channel, int from, int to, int kind) {
    Connection& link = links_.emplace_back();
    SendConn sender{{fifosOf(link)}, {}, nullptr, {}};
    Connection& other = shape_.apart ? links_.emplace_back() : link;
    RecvConn receiver{{shape_.apart ? fifosOf(other) : sender}, {}, nullptr, {}};
    sender.step = link.sendStep.data();
    receiver.step = other.recvStep.data();
    if (shape_.tells || shape_.apart) {
      sender.words = &link.said;
      receiver.words = &link.expected;
    }
    if (shape_.pulls) {
      sender.pull = {.addresses = &link.addresses, .window = window(), .least = shape_.pullLeast, .registeredOnly = 0};
      if (!shape_.apart) receiver.pull = {.addresses = &link.addresses, .shift = 0};
    }
    // For whoever lends it shared slots.
    receiver.shared = {
        .taken = nullptr, .asked = &other.asked.value, .window = window(), .least = shape_.pullLeast, .count = 0};
    if (shape_.sharedSlots != 0 && kind == static_cast<int>(ConnKind::Mesh)) {
      lend(poolOf(from, channel, true), sender);
      lend(poolOf(to, channel, false), receiver);
      routes_.push_back({sender, receiver, &poolOf(from, channel, true), shape_.firstStep});
    }
    ranks_[from].send[kind][channel][to] = sender;
    ranks_[to].recv[kind][channel][from] = receiver;
    pairs_.push_back({from, to, sender, receiver});
  }

  ConnFifos fifosOf(Connection& link) {
    link.asked.value = shape_.firstStep;
    for (Counters* counters : {&link.tail, &link.head, &link.sendStep, &link.recvStep}) {
      for (Counter& counter : *counters) counter.value = shape_.firstStep;
    }
    // As an earlier step left them; zero would be the word of step 2^32 - 1.
    for (SlotWords& sizes : link.said.size) std::ranges::fill(sizes.word, sizeWord(shape_.firstStep - 1, 0));
    std::ranges::fill(link.expected.expected.word, sizeWord(shape_.firstStep - 1, 0));
    ConnFifos view{};
    for (int p = 0; p < kProtocols; ++p) {
      const auto protocol = static_cast<Protocol>(p);
      const std::uint32_t slotBytes = slotBytesOf(protocol);
      std::vector<Line>& slots = link.slots[p];
      slots.resize(std::size_t{slotBytes} * kSteps / sizeof(Line));
      if (protocol != Protocol::Simple && shape_.staleStep != 0) soil(protocol, slots);
      view.slots[p] = reinterpret_cast<std::byte*>(slots.data());
      view.slotBytes[p] = slotBytes;
    }
    view.tail = link.tail.data();
    view.head = link.head.data();
    return view;
  }

  /// Leaves flags of an earlier time in every line.
  void soil(Protocol protocol, std::vector<Line>& slots) const {
    const std::size_t linesPerSlot = slots.size() / kSteps;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const std::uint64_t slot = i / linesPerSlot;
      const std::uint64_t step = shape_.staleStep + (slot - shape_.staleStep) % kSteps;
      for (std::size_t w = 0; w < 16; ++w) {
        if (protocol == Protocol::LL) slots[i].word[w] = ll::wordOf(0xdeadbeef, ll::flagOf(step));
        if (protocol == Protocol::LL128) slots[i].word[w] = w == 15 ? step + 1 : 0xdeadbeefdeadbeef;
      }
    }
  }

  WorldShape shape_;
  std::uint32_t abortWord_ = 0;
  std::vector<Rank> ranks_;
  std::list<Connection> links_;
  std::vector<Pair> pairs_;
  std::map<std::tuple<int, unsigned, bool>, Pool> pools_;
  std::vector<Route> routes_;
};

}  // namespace tutti::device::test

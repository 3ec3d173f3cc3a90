// A connection (one direction, one channel, one peer, one kind) as kernels see it: the sender's end and the receiver's.
// Plain values, identical in both worlds; the host fills them in once, then they are constant. Each end has its own, in
// its device memory; the pointers hold addresses as kernels of that device use them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

// For functions that are the same on the host and in kernels.
#if defined(__CUDACC__)
#define TUTTI_PURE __host__ __device__ constexpr
#else
#define TUTTI_PURE constexpr
#endif

namespace tutti::device {

inline constexpr int kSteps = 8;      ///< slots of a connection's FIFO (NCCL_STEPS)
inline constexpr int kProtocols = 3;  ///< LL, LL128, Simple, in this order
enum class Protocol : std::uint8_t { LL, LL128, Simple };

/// Bytes of one slot by protocol; 0: the protocol is not offered.
using SlotBytes = std::array<std::uint32_t, kProtocols>;

/// What a connection is for. Two ranks may have one of each: Graph connections follow the ring, the trees and PAT and
/// have slots for every protocol; Mesh connections join any pair, for messages and direct algorithms, without LL128.
enum class ConnKind : std::uint8_t { Graph, Mesh };
inline constexpr int kConnKinds = 2;

// --- words that both sides of something read and write

inline constexpr std::size_t kWordsApart = 16;
/// Lies so far from the next one that who polls it does not suffer from the writer of another. Only ever grows, modulo
/// 2^64.
struct Counter {
  std::uint64_t value;
  std::uint64_t apart[kWordsApart - 1];
};
/// One of each protocol.
inline constexpr std::size_t kCountersBytes = kProtocols * sizeof(Counter);

/// A word for each of the last `kCount` steps, in cache lines of their own.
template <std::size_t kCount>
struct StepWords {
  static_assert(kCount <= kWordsApart);
  std::uint64_t word[kWordsApart];
  TUTTI_PURE std::uint64_t* of(std::uint64_t step) { return &word[step % kCount]; }
  TUTTI_PURE const std::uint64_t* of(std::uint64_t step) const { return &word[step % kCount]; }
  /// What is said of all steps at once, in the same line as the last of their words.
  TUTTI_PURE std::uint64_t* ofAll() {
    static_assert(kCount < kWordsApart);
    return &word[kWordsApart - 1];
  }
  TUTTI_PURE const std::uint64_t* ofAll() const {
    static_assert(kCount < kWordsApart);
    return &word[kWordsApart - 1];
  }
};
/// A step's word lasts until its slot is used again …
using SlotWords = StepWords<kSteps>;
/// … or kSteps steps longer: who looks at it may lag behind the kernel, which may be ahead of the slots.
inline constexpr std::uint32_t kMostSharedSlots = 16;
using AskWords = StepWords<kMostSharedSlots>;
static_assert(2 * kSteps <= kMostSharedSlots);

/// A size, as an end says it of the slot of `step`: never equal to what it said of an earlier one.
TUTTI_PURE std::uint64_t sizeWord(std::uint64_t step, std::uint32_t bytes) {
  return (step + 1) << 32 | bytes;
}
TUTTI_PURE bool isSizeOf(std::uint64_t word, std::uint64_t step) {
  return static_cast<std::uint32_t>(word >> 32) == static_cast<std::uint32_t>(step + 1);
}

/// Addresses of this rank's device; none: of no bytes.
struct MemoryRange {
  std::uint64_t base;
  std::uint64_t bytes;
};

// --- what both ends have

/// A FIFO for each protocol. Between two devices both ends have the same slots, `tail` and `head`; over a network each
/// end has its own, in its host's memory (slots also in device memory), and its host thread is the other end's
/// stand-in: it writes and reads what the peer's kernel would. Index the counters through tailOf() and its like.
struct ConnFifos {
  std::byte* slots[kProtocols];  ///< kSteps in a row, filled by the sender, read by the receiver, in whose memory
                                 ///< they lie between two devices; null: the protocol is not offered
  std::uint32_t slotBytes[kProtocols];  ///< of one slot
  std::uint32_t reserved;
  Counter* tail;  ///< slots produced; the sender writes it, after the content; lies with the receiver, who polls it
  Counter* head;  ///< slots consumed; the receiver writes it, after its last read; lies with the sender, who polls it
  Counter* step;  ///< where this end's next kernel resumes; its own kernels write it, at their end, in device memory

  TUTTI_PURE std::uint64_t* tailOf(Protocol p) const { return &tail[static_cast<int>(p)].value; }
  TUTTI_PURE std::uint64_t* headOf(Protocol p) const { return &head[static_cast<int>(p)].value; }
  TUTTI_PURE std::uint64_t* stepOf(Protocol p) const { return &step[static_cast<int>(p)].value; }
};
static_assert(sizeof(Counter) == 128 && sizeof(SlotWords) == 128 && sizeof(AskWords) == 128 && sizeof(ConnFifos) == 64);

// --- the sender's end

/// The Simple protocol may leave content where it lies instead of filling a slot, if the peer's device, or the network,
/// can read it there (docs/protocols.md, "Pulling"). It stays as it is until the receiver has consumed the slot.
struct SendPull {
  SlotWords*
      addresses;  ///< the sender's address of a step's content, or 0: in the slot. Its kernel writes it before the
                  ///< tail; lies with who reads it, the receiver or the sender's host. Null: all goes through slots.
                  ///< ofAll(): not 0 when the sender has left without seeing its offers consumed, which may change then
  MemoryRange window;            ///< only content in here may be left where it lies …
  std::uint32_t least;           ///< … if it has so many bytes …
  std::uint32_t registeredOnly;  ///< … and, if this is not 0, only that of works whose buffers are registered
                                 ///< (KernelArgs::registered): the network has to know it
};

/// What a sender's kernel says of its steps to the host thread that sends them over a network; in the sender's host
/// memory, or the relay's.
struct SendWords {
  SlotWords size[kProtocols];  ///< sizeWord() of a step, written before the tail (Simple) or beside the lines
  AskWords place;  ///< which of the shared slots a step has, a number that grows modulo 2^32; written before the tail
};

/// Over a network, connections for messages may share the slots of the Simple protocol: all of one channel in one
/// direction have `count` of them together, which are taken one after the other, whichever connection they are for
/// (docs/network.md).
struct SendShared {
  std::uint64_t* taken;  ///< how many were taken so far; this rank's kernels write it, in device memory. Null: the
                         ///< slots are the connection's own
  const std::uint64_t* givenBack;  ///< how many of them are free again; written and kept by the host that sends them
  std::uint32_t count;             ///< a power of two, at most kMostSharedSlots
  std::uint32_t reserved;
};

struct alignas(16) SendConn : ConnFifos {
  SendPull pull;
  SendWords* words;  ///< null: the peer's kernel reads the slots, and nobody wants to know
  SendShared shared;
};
static_assert(sizeof(SendPull) == 32 && sizeof(SendShared) == 24 && sizeof(SendConn) == 64 + 32 + 8 + 24);
static_assert(sizeof(SendWords) == (kProtocols + 1) * sizeof(Counter));

// --- the receiver's end

/// The other side of SendPull.
struct RecvPull {
  const SlotWords* addresses;  ///< the sender's; null: content is always in the slot
  std::int64_t shift;          ///< to be added to them: the receiver's device sees the sender's memory elsewhere
};

/// What a receiver's kernel says of its steps by the Simple protocol to the host thread that receives them from a
/// network; in the receiver's host memory.
struct RecvWords {
  AskWords expected;  ///< sizeWord() of what is read of a step, written before the kernel waits for it. Of shared
                      ///< slots, the last of three words, with release: from then on the slot is the network's
  AskWords place;     ///< of shared slots: askedPlace() of the step (device/recv_order.h)
  AskWords into;      ///< of shared slots: where in the receiver's memory the content belongs; 0: in the slot
};

/// As SendShared; a receiver's slots are free again when its kernels say so. They ask for steps before they wait for
/// them.
struct RecvShared {
  std::uint64_t* taken;  ///< as SendShared::taken
  std::uint64_t* asked;  ///< the connection's steps that were asked for; written as `taken`. Null where that is
  MemoryRange window;    ///< the network writes content into this memory where it is asked to …
  std::uint32_t least;   ///< … and it has so many bytes
  std::uint32_t count;   ///< as SendShared::count
};

struct alignas(16) RecvConn : ConnFifos {
  RecvPull pull;
  RecvWords* words;  ///< null: the peer's kernel fills the slots
  RecvShared shared;
};
static_assert(sizeof(RecvPull) == 16 && sizeof(RecvShared) == 40 && sizeof(RecvConn) == 64 + 16 + 8 + 40);
static_assert(sizeof(RecvWords) == 3 * sizeof(Counter));

}  // namespace tutti::device

// How a trace lies in its file: a header, notes (texts, communicators, threads, clocks), and a ring of records. Shared
// by the library, which writes, and tutti-info, which reads. Numbers are little-endian, times nanoseconds of
// CLOCK_MONOTONIC of the host.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tutti::trace {

inline constexpr std::array<char, 8> kMagic{'T', 'U', 'T', 'T', 'I', 'T', 'R', 'C'};
/// Raised whenever a reader of before would misread. Readers read their own version and those before it.
inline constexpr std::uint32_t kVersion = 1;

/// At the beginning of the file. `notesUsed`, `next` and `closed` change while the process lives; the rest is constant
/// once `magic` is there, which is written last.
struct FileHeader {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t pid;
  std::uint64_t fileBytes;
  std::uint64_t notesOffset;
  std::uint64_t notesBytes;
  std::uint64_t ringOffset;
  std::uint64_t ringRecords;
  std::uint64_t hostHash;  ///< equal in all processes of a host: they share a clock
  std::uint64_t openedMonotonic;
  std::uint64_t openedRealtime;  ///< ns since 1970 at the same moment
  std::uint64_t notesUsed;       ///< bytes of whole notes
  std::uint64_t next;            ///< records begun so far
  std::uint64_t closed;          ///< when the process ended in order; 0: it has not
  std::array<char, 64> host;     ///< zero-terminated
  std::array<char, 32> library;  ///< its version, zero-terminated
};
static_assert(sizeof(FileHeader) == 200);
inline constexpr std::uint64_t kHeaderBytes = 4096;

/// What a note says. Each begins with NoteHead and is a multiple of 8 bytes long.
enum class NoteType : std::uint32_t { Text = 1, Thread = 2, Comm = 3, Clock = 4 };
struct NoteHead {
  std::uint32_t bytes;  ///< of the note, this included
  NoteType type;
};
/// Followed by that many characters. Its id is where it lies, in bytes from the beginning of the notes, plus 1.
struct TextNote {
  NoteHead head;
  std::uint32_t length;
  std::uint32_t reserved;
};
struct ThreadNote {
  NoteHead head;
  std::uint32_t number;  ///< as records name it, from 1 on
  std::uint32_t tid;     ///< as the system names it
  std::array<char, 16> name;
};
struct CommNote {
  NoteHead head;
  std::uint32_t number;  ///< as records name it, from 1 on
  std::int32_t rank;
  std::int32_t nRanks;
  std::int32_t device;
  std::uint64_t hash;  ///< equal on all its ranks
  std::uint32_t name;  ///< text
  std::uint32_t reserved;
};
/// A clock of another host, as this process measured it: its time = ours + offset.
struct ClockNote {
  NoteHead head;
  std::uint64_t hostHash;  ///< whose
  std::int64_t offset;
  std::uint64_t error;  ///< the offset is right within this
  std::uint64_t when;   ///< our time
};

/// What a record tells. Where it says "number", that is Record::number.
enum class Kind : std::uint16_t {
  None = 0,
  Call = 1,      ///< of the API. number: of the call; text: its function; a: result code
  Op = 2,        ///< asked for. number: of the communicator's operation; text: function; a: bytes; b: OpWords; c: call
  Plan = 3,      ///< of messages alone. number: of the first operation; a: operations; b: launches; c: estimate, ns
  Decision = 4,  ///< planning a collective. number: of it; text: why; a: DecisionWords; b: estimate, ns; c: bytes
  Launch = 5,    ///< number: of the launch; text: kernel; a: LaunchWords; b: first operation; c: operations
  Kernel = 6,    ///< on the device. number: of the launch; a: channel, kWholeKernel: all of it
  Connect = 7,   ///< of missing connections. text: with whom; number: a wait
  Wait = 8,      ///< of a thread that calls, for the device or for peers. number: a wait; text: for what
  Stage = 9,     ///< of init. number: a wait; text: which
  NetSend = 10,  ///< a request of the network. number: step; a: StepWords; b: bytes; c: ns that the network refused it
  NetRecv = 11,  ///< the same; of c, ns that the network refused the receive
  Failure = 12,  ///< of a communicator. text: why; a: result code
  Ending = 13,   ///< of a communicator. text: how
};
inline constexpr std::uint16_t kLastKind = 13;
inline constexpr std::uint64_t kWholeKernel = 0xffff;

/// The record is of something that had begun and not ended; one that tells the end, with the same kind, thread and
/// number, may follow.
inline constexpr std::uint16_t kOpen = 1;

/// One event, from `begin` to `end`. Whole once `sequence` is its place among all records, plus 1.
struct Record {
  std::uint64_t sequence;
  std::uint64_t begin;
  std::uint64_t end;
  Kind kind;
  std::uint16_t thread;
  std::uint16_t comm;  ///< 0: none
  std::uint16_t flags;
  std::uint32_t number;
  std::uint32_t text;  ///< id of a text, 0: none
  std::uint64_t a;
  std::uint64_t b;
  std::uint64_t c;
};
static_assert(sizeof(Record) == 64);

/// Record::b of an Op, and Record::a of other kinds: small numbers in one word.
struct OpWords {
  std::int32_t peer;  ///< of a message, or root; -1: neither
  std::uint8_t type;  ///< as nccl.h numbers it
  std::uint8_t message;
  std::uint16_t reserved;
};
struct DecisionWords {
  std::uint8_t algorithm;
  std::uint8_t protocol;
  std::uint8_t firstChannel;
  std::uint8_t lastChannel;
  std::uint32_t chunkBytes;
};
struct LaunchWords {
  std::uint16_t works;
  std::uint16_t threads;
  std::uint8_t firstChannel;
  std::uint8_t channels;
  std::uint8_t inGraph;
  std::uint8_t messages;
};
struct StepWords {
  std::int32_t peer;
  std::uint16_t channel;
  std::uint8_t protocol;
  std::uint8_t kind;  ///< of the connection
};
static_assert(sizeof(OpWords) == 8 && sizeof(DecisionWords) == 8 && sizeof(LaunchWords) == 8 && sizeof(StepWords) == 8);

}  // namespace tutti::trace

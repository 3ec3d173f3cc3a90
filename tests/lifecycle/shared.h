// What the ranks of a random life share, be they threads or processes: unique ids, meetings, and what each of them does
// at the moment, for the watchdog.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "lifecycle/world.h"
#include "nccl.h"

namespace lifecycle {

inline constexpr int kMostRanks = 8;
inline constexpr long kMostDeeds = 1L << 17;
inline constexpr long kMeetingsOfDeed = 4;
inline constexpr long kMostMeetings = kMeetingsOfDeed * kMostDeeds + 4;

/// Text that one thread writes and others read, also those of other processes, whenever they like.
class Notice {
 public:
  void write(std::string_view text);
  std::string read() const;

 private:
  static constexpr std::size_t kWords = 24;
  std::array<std::atomic<std::uint64_t>, kWords> words_{};
};

struct Place {
  Notice doing;
  std::atomic<long> step{-1};
  std::atomic<long> sinceMs{0};  ///< of the monotonic clock; 0: nothing is done
};

/// Lies in memory that all processes share; zeroes at first.
struct Shared {
  std::uint64_t seed = 0;
  int ranks = 1;
  long patienceMs = 60'000;
  std::atomic<std::uint32_t> features{0};
  std::atomic<bool> ended{false};  ///< somebody has failed and told why
  std::array<std::array<Place, kLanes>, kMostRanks> places;
  std::array<std::atomic<int>, kMostMeetings> met{};  ///< how many have come to a meeting
  std::array<ncclUniqueId, 1024> ids{};
  std::array<std::atomic<long>, 1024> idOf{};  ///< the deed whose id lies there, plus one
};

/// Gets zeroed memory that children by fork() share; it lasts as long as the process.
Shared& makeShared();

long nowMs();

/// Says what a lane of a rank does now; an empty text: nothing that could hang.
void note(Shared& shared, int rank, int lane, long step, std::string_view doing);

/// Prints why, and what every rank does, and ends the process. Once per job; later callers only end theirs.
[[noreturn]] void fail(Shared& shared, int rank, long step, const std::string& why);

/// Waits until `count` callers have come to meeting `number`.
void meet(Shared& shared, long number, int count);

/// Hands the id of a deed to the other ranks, and waits for it.
void publish(Shared& shared, long deed, const ncclUniqueId& id);
ncclUniqueId await(Shared& shared, long deed);

/// Ends the process, with a word about all ranks, when one of those from `first` to `last` does one thing for longer
/// than the patience. Returns at once; its thread goes on until the process ends.
void watch(Shared& shared, int first, int last);

}  // namespace lifecycle

// The communicators of this process, as whoever reports on them sees them.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ras/report/survey.h"

namespace tutti::ras {

/// What does not change of a rank of this process.
struct OwnRank {
  CommKey comm;
  std::int32_t size = 0;
  std::int32_t rank = 0;
  std::int32_t cudaDevice = -1;
  std::int32_t nvmlDevice = -1;
  std::string name = {};     ///< as CommFacts has it
  std::uint64_t parent = 0;  ///< likewise
};

class Registry;

/// A rank is listed while this lives.
class Listing {
 public:
  Listing(const Listing&) = delete;
  ~Listing();

 private:
  friend class Registry;
  struct Entry {
    OwnRank rank;
    CommMembers members;
    std::function<RankState()> read;
  };
  Listing(Registry& registry, std::list<Entry>::iterator place) : registry_(registry), place_(place) {}

  Registry& registry_;
  std::list<Entry>::iterator place_;
};

/// Any thread. Its lock is held for copies of plain values alone.
class Registry {
 public:
  /// Of the process.
  static Registry& instance();

  /// `read` tells how the rank is; it takes no lock, and is never called again once the listing is gone. `members` are
  /// kept once for all ranks of a communicator in this process.
  std::unique_ptr<Listing> add(const OwnRank& rank, std::vector<CommMember> members, std::function<RankState()> read);
  /// All that are listed. `process`: whose they are.
  std::vector<CommFacts> snapshot(ProcessId process) const;

 private:
  friend class Listing;
  mutable std::mutex mutex_;
  std::list<Listing::Entry> entries_;
};

}  // namespace tutti::ras

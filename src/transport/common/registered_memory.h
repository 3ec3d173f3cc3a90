// Memory of the application's that networks may be told of: what it has registered with a communicator, and what the
// graphs use that hold operations of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace tutti::transport {

/// A range, for as long as somebody wants it. It may overlap others.
struct RegisteredRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::uint64_t id = 0;            ///< from 1 on; never used again
  unsigned long long capture = 0;  ///< of the graph that it is for; 0: the application has registered it
  bool refused = false;            ///< a network did not take it
  bool outdated = false;           ///< of a graph: later the application has registered what may be other memory
  bool holds(std::uintptr_t from, std::size_t bytes) const {
    return from >= begin && from < end && bytes <= end - from;
  }
};

/// Who has told a network of ranges.
class RegistrationHolder {
 public:
  /// Takes back what concerns ranges that are there no more. Any thread.
  virtual void tidy() = 0;

 protected:
  ~RegistrationHolder() = default;
};

/// The ranges of one communicator. Any thread.
class RegisteredMemory {
 public:
  std::uint64_t add(std::uintptr_t begin, std::uintptr_t end);
  /// The holders have taken back what they can when it returns: all but what messages under way are sent from.
  void remove(std::uint64_t id);

  /// Unless the capture has one that covers it. Whether it is new.
  bool addForGraph(std::uintptr_t begin, std::uintptr_t end, unsigned long long capture);
  /// All of that capture. Calls nobody, for drivers tell of a graph's end where nothing may be called: tidy() follows
  /// some time.
  void removeForGraph(unsigned long long capture);

  /// Whether an operation may be told that its `bytes` from `from` on lie in registered memory: that the application
  /// has registered or, of one that is captured, that its graph has.
  bool covers(std::uintptr_t from, std::size_t bytes, unsigned long long capture = 0) const;
  /// The latest range that holds them: where memory was freed and allocated again, the others are of what was there
  /// before.
  std::optional<RegisteredRange> find(std::uintptr_t from, std::size_t bytes) const;
  bool knows(std::uint64_t id) const;
  /// A network does not take the range: operations to come are not told of it. Whether it was the first to say so.
  bool refuse(std::uint64_t id);

  void join(RegistrationHolder& holder);
  /// Nobody calls the holder any more when it returns.
  void leave(RegistrationHolder& holder);
  /// Lets holders tidy up, if ranges have gone since. Must not be called by one.
  void tidy();
  /// How many ranges have gone so far.
  std::uint64_t gone() const { return gone_.load(std::memory_order_acquire); }

 private:
  mutable std::mutex mutex_;
  std::vector<RegisteredRange> ranges_;  ///< by id
  std::uint64_t lastId_ = 0;
  std::atomic<std::uint64_t> gone_{0};
  std::mutex holdersMutex_;  ///< before any of theirs, and before `mutex_`
  std::vector<RegistrationHolder*> holders_;
  std::atomic<std::uint64_t> tidied_{0};
};

}  // namespace tutti::transport

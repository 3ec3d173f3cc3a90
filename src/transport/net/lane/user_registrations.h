// What a network connection sends from where it lies in the application's memory, or receives there: which ranges its
// network was told of, and which messages are under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "transport/common/registered_memory.h"
#include "transport/net/lane/memory_registrar.h"

namespace tutti::net {

/// Tells the network of a range when it is first used, and takes that back when the range has gone and nothing is under
/// way there, at the latest at the end. The progress engine sends and receives; any thread may tidy().
class UserRegistrations final : public transport::RegistrationHolder {
 public:
  /// `registrar` must outlive it.
  UserRegistrations(std::shared_ptr<transport::RegisteredMemory> memory, MemoryRegistrar& registrar);
  ~UserRegistrations();
  UserRegistrations(const UserRegistrations&) = delete;
  UserRegistrations& operator=(const UserRegistrations&) = delete;

  using Use = RegisteredUse;
  /// The message may be sent from there, or received there, until end(). Empty: the memory is not registered any more,
  /// or the network does not take it, which is said once.
  std::optional<Use> begin(const void* data, std::size_t bytes);
  void end(const Use& use);
  void tidy() override;

 private:
  struct Entry {
    std::uint64_t range = 0;
    void* registration = nullptr;
    bool refused = false;
    unsigned underWay = 0;
  };
  Entry& entryOf(const transport::RegisteredRange& range);
  void tidyLocked();

  const std::shared_ptr<transport::RegisteredMemory> memory_;
  MemoryRegistrar& registrar_;
  std::mutex mutex_;
  std::vector<Entry> entries_;
  std::uint64_t seen_ = 0;  ///< RegisteredMemory::gone() at the last tidy() that left nothing
};

}  // namespace tutti::net

// How a network is told of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.h"

namespace tutti::net {

/// Where a message is sent from in registered memory: the range, and what the network calls it.
struct RegisteredUse {
  std::uint64_t range = 0;
  void* registration = nullptr;
};

/// A connection's way to tell its network of memory. Errors: the network's.
class MemoryRegistrar {
 public:
  /// Memory of the device.
  virtual Result<void*> registerUser(void* data, std::size_t bytes) = 0;
  virtual void deregister(void* registration) = 0;
  /// For messages.
  virtual std::string text() const = 0;

 protected:
  ~MemoryRegistrar() = default;
};

/// Memory that a connection has instead of some that its network does not take.
class SpareMemory {
 public:
  /// Host memory of the library's, which stays registered and allocated as long as the connection.
  struct Kept {
    std::byte* data = nullptr;
    void* registration = nullptr;
  };
  /// Errors: no memory; the network's.
  virtual Result<Kept> allocateKept(std::size_t bytes) = 0;

 protected:
  ~SpareMemory() = default;
};

}  // namespace tutti::net

// How many connections that have not proved where they belong this process keeps.
#pragma once

#include <cstddef>
#include <memory>

#include "base/clock.h"

namespace tutti {

class Address;

/// How long a connection may keep its place. Who belongs here speaks at once.
inline constexpr milliseconds kUnprovenTime{2000};

/// Places for a process with `descriptors` of them (RLIMIT_NOFILE): a small share, 48 at most.
std::size_t unprovenPlaces(std::size_t descriptors);

/// A limited number of places, at most half of them for one remote host. Any thread.
class UnprovenPlaces {
 public:
  /// One place, given back when destroyed. May outlive whoever gave it.
  class Place {
   public:
    Place() = default;
    bool taken() const { return held_ != nullptr; }
    void giveBack() { held_.reset(); }

   private:
    friend class UnprovenPlaces;
    std::shared_ptr<void> held_;
  };

  explicit UnprovenPlaces(std::size_t limit);
  /// Those that all listeners of this process share.
  static UnprovenPlaces& ofProcess();

  /// A place for a connection from `host` (its port does not count); not taken() where there is none. Who has a place
  /// keeps it: whoever comes last goes, and may come again.
  Place take(const Address& host);
  /// The same for one from a local socket.
  Place takeLocal();
  std::size_t taken() const;
  /// So many are taken that strangers are likely to be about.
  bool crowded() const { return 2 * taken() >= limit_; }

 private:
  struct Book;
  std::size_t limit_;
  std::shared_ptr<Book> book_;
};

}  // namespace tutti

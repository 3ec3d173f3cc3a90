// Communicators that are being made out of another one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>

#include "base/ranks/abort.h"

namespace tutti::comm {

/// Ends the making of children with their parent. Any thread.
class Births {
 public:
  /// What ends a birth.
  enum class Tie : std::uint8_t {
    Health,  ///< a failure of the parent: it may be what holds the child up
    Life,    ///< its abort by the application alone: the child is made because the parent has failed
    Growth,  ///< the death of a member: all of them have to come, but the parent may end meanwhile
  };

  /// One child; from begin() until this is destroyed.
  class Birth {
   public:
    Birth(const Birth&) = delete;
    ~Birth();

   private:
    friend class Births;
    struct Entry {
      Abort* child;
      Tie tie;
    };
    Birth(Births& all, std::list<Entry>::iterator place) : all_(all), place_(place) {}
    Births& all_;
    std::list<Entry>::iterator place_;
  };

  /// `child` is raised if the parent ends meanwhile; now, if it has.
  [[nodiscard]] Birth begin(Abort& child, Tie tie);
  /// Ends all births with that tie, with Life those with Health as well; also those that begin later.
  void stop(Tie reason, Status why, const std::string& text);

 private:
  struct Stop {
    Status why;
    std::string text;
  };
  static void raise(Abort& child, const Stop& stop) { child.raise(stop.why, stop.text, stop.text); }

  Stop& stopOf(Tie reason) { return stops_[static_cast<std::size_t>(reason)]; }
  /// Why what is tied so was stopped; ok: it was not.
  const Stop& reasonFor(Tie tie);

  std::mutex mutex_;
  std::list<Birth::Entry> entries_;
  std::array<Stop, 3> stops_;  ///< by what came
};

}  // namespace tutti::comm

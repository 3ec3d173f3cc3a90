// Random lives of communicators, the same on every rank for a seed.
#pragma once

#include <cstdint>
#include <vector>

#include "differential/dice.h"
#include "lifecycle/world.h"

namespace lifecycle {

struct Limits {
  int ranks = 4;
  std::uint32_t features = 0;  ///< what the library has
  bool fewKernels = false;     ///< sums of int32, and all of float
  std::size_t comms = 10;      ///< alive at once
  std::size_t recordings = 6;
  int depth = 4;  ///< generations below the first
};

/// Not for several threads at once.
class Generator {
 public:
  Generator(std::uint64_t seed, const Limits& limits) : dice_(seed), limits_(limits) {}

  Step next();
  /// Ends what is left, a step at a time: done when a step has no deeds.
  Step ending();

 private:
  struct Recording {
    int id;
    Comm comm;      ///< as it was when it was recorded
    bool playable;  ///< its communicator was not aborted or revoked
  };
  /// A buffer of a recording, or of a thread that drives communicators (-1).
  struct Registration {
    int id;
    int comm;
    int recording;
  };

  bool has(std::uint32_t feature) const { return (limits_.features & feature) != 0; }
  Deed begin(Kind kind, const Comm& comm);
  std::vector<Comm> alive(int lane, State state) const;
  bool alone(const Comm& comm) const;
  std::vector<Comm> relatives(const Comm& comm) const;
  bool kept(const Recording& recording) const;
  bool graphsOfOthers(const Comm& comm) const;
  void noteWork(const Comm& comm);
  Comm pickFor(Kind kind, const std::vector<Comm>& all);
  void put(const Comm& comm);
  void remove(int id);
  void spoilRecordings(const Comm& comm);

  Kind pickKind();
  bool make(Kind kind, int lane, bool parallel, Deed& deed);
  bool makeInit(int lane, bool parallel, Deed& deed);
  bool makeSplit(const Comm& parent, bool parallel, Deed& deed);
  bool makeShrink(Kind kind, const Comm& parent, bool parallel, Deed& deed);
  bool makeGrow(const Comm& parent, bool parallel, Deed& deed);
  bool makeEnd(Kind kind, const Comm& comm, Deed& deed);
  bool makeAbort(const Comm& comm, Deed& deed);
  bool makeRecording(Kind kind, int lane, Deed& deed);
  bool makeRegister(const Comm& comm, Deed& deed);
  bool makeDeregister(int lane, Deed& deed);
  bool doomRelatives(const Comm& comm, Deed& deed);
  bool makeUse(Kind kind, const Comm& comm, Deed& deed);
  bool makePause(Kind kind, Comm comm, Deed& deed);
  bool makeWrong(int lane, Deed& deed);
  bool makeOnOne(Kind kind, int lane, bool parallel, Deed& deed);
  Op makeOp(const Comm& comm);
  Wish makeWish();
  Comm makeChild(const Comm& parent, const Wish& wish, bool shared, bool parallel);
  bool makeGroup(Step& step);

  differential::Dice dice_;
  Limits limits_;
  long steps_ = 0;
  long deeds_ = 0;
  long ops_ = 0;
  int comms_ = 0;
  int families_ = 0;
  int recorded_ = 0;
  int registered_ = 0;
  std::vector<Comm> live_;
  std::vector<Recording> recordings_;
  std::vector<Registration> registrations_;
};

}  // namespace lifecycle

// Carries out what one thread of a rank has to do.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lifecycle/seat.h"

namespace lifecycle {

/// Belongs to one thread, on whose current device it works.
class Player {
 public:
  Player(Shared& shared, Seat& seat, int rank, int lane, const Limits& limits);
  ~Player();
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  /// The deeds of this lane. Ends the process where something is not as it must be.
  void play(const Step& step);
  /// How often each kind of deed was done here.
  const std::array<long, kKinds>& counts() const { return counts_; }
  void quiet() { note(shared_, rank_, lane_, step_, ""); }

 private:
  // A deed in three parts, so that several can be called in one group.
  void begin(const Deed& deed);
  ncclResult_t call(const Deed& deed);
  void finish(const Deed& deed);
  void play(const Deed& deed);
  void playGroup(const std::vector<const Deed*>& mine);

  void record(const Deed& deed);
  void replay(const Deed& deed);
  void dropGraph(const Deed& deed);
  void registerBuffer(const Deed& deed);
  void deregisterBuffer(const Deed& deed);
  void makeWrongCall(const Deed& deed);
  void beginStuck(const Deed& deed);
  void launchStuck(const Deed& deed);
  void endStuck();
  void sayId(const Deed& deed);

  ncclResult_t init(const Deed& deed);
  ncclResult_t grow(const Deed& deed);
  ncclResult_t split(const Deed& deed);
  ncclResult_t shrink(const Deed& deed);
  ncclResult_t end(const Deed& deed);
  ncclResult_t work(const Deed& deed);

  void finishBirth(const Deed& deed, const Comm& born);
  void abortAll(const std::vector<Comm>& doomed);
  void finishFamily(const Deed& deed);
  void checkSuspended(const Deed& deed);

  /// Waits until a communicator is no longer in progress; its state.
  ncclResult_t settled(int comm, std::string_view what);
  void expect(ncclResult_t is, ncclResult_t shall, const std::string& what);
  /// 0, or 7 from a communicator that does not block.
  void expectStarted(ncclResult_t is, bool blocking, const std::string& what);
  [[noreturn]] void complain(const std::string& what);
  void now(const std::string& what) { note(shared_, rank_, lane_, step_, what); }

  Slot& freeSlot();
  void complete(Slot& slot);
  void drain(int comm);
  bool isMember(const Comm& comm) const { return comm.rankOf(rank_) >= 0; }
  bool isExcluded(const Deed& deed) const;
  /// Of a deed that ends a family, others take part than those of its communicator.
  bool isConcerned(const Deed& deed) const;

  static constexpr std::size_t kSlots = 6;
  Shared& shared_;
  Seat& seat_;
  int rank_;
  int lane_;
  Limits limits_;
  long step_ = 0;
  const Deed* deed_ = nullptr;
  bool grouped_ = false;
  std::array<cudaStream_t, 2> streams_{};
  std::array<Slot, kSlots> slots_;
  std::size_t nextSlot_ = 0;
  Slot* stuck_ = nullptr;
  std::map<long, Slot*> slotOf_;  ///< by number of the deed, until it is finished
  std::array<long, kKinds> counts_{};
};

/// The configuration that a wish asks for; `wish` is given.
ncclConfig_t configOf(const Wish& wish);

}  // namespace lifecycle

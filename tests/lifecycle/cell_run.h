// One cell of the table as one rank carries it out.
#pragma once

#include <optional>
#include <string>

#include "lifecycle/shared.h"
#include "lifecycle/table.h"
#include "lifecycle/work.h"

namespace lifecycle {

inline constexpr int kMembers = 3;   ///< ranks of the communicator; the last is the one that dies or is excluded
inline constexpr int kNewcomer = 3;  ///< the rank of the job that Grow takes in
inline constexpr int kTableRanks = 4;
inline constexpr long kMostMs = 10'000;  ///< for a call, and until word of a death comes to those whose work needs it

/// Carries out one cell with the other ranks. Belongs to one thread; makes the device of its rank current.
class CellRun {
 public:
  /// `number` counts the cells of a run: meetings and ids follow from it.
  CellRun(Shared& shared, const Cell& cell, int rank, long number);
  ~CellRun();
  CellRun(const CellRun&) = delete;
  CellRun& operator=(const CellRun&) = delete;

  /// Empty if all was as the table says, else what was not. In processes the one that dies does not return.
  std::string run();
  /// What the call was answered, after run(); nothing where this rank does not make it.
  std::optional<ncclResult_t> answer() const { return answer_; }

 private:
  void prepare();
  void enterSituation();
  void beginWork();
  void awaitNotice();
  void record();
  void die();
  ncclResult_t call();
  void callAndJudge();
  ncclResult_t grow();
  ncclResult_t pause();
  ncclResult_t use();
  ncclResult_t end();
  ncclResult_t askStatistics();
  ncclResult_t askState();
  ncclResult_t operate();
  ncclResult_t registerBuffer();
  void followUp(ncclResult_t answer);
  void followBirth();
  void followRevoke();
  void followSuspend();
  void leave(ncclResult_t answer);

  bool acts() const;
  bool neverEnds() const;
  bool last() const { return rank_ == kMembers - 1; }
  bool works() const { return cell_.situation == Situation::Outstanding || cell_.situation == Situation::DeadPeerWork; }
  bool dead() const { return someoneDies(cell_.situation); }
  ncclResult_t settle(ncclComm_t comm);
  /// The call's own answer, or what the state says once it is done.
  ncclResult_t outcome(ncclResult_t called, ncclComm_t carrier);
  ncclResult_t reduce(Slot& slot, ncclComm_t comm, int rank, int size, bool wait);
  void mustReduce(ncclComm_t comm, int rank, int size, const char* what);
  void must(ncclResult_t is, ncclResult_t shall, const std::string& what);
  void wrong(const std::string& what);
  void await(Slot& slot, bool look);
  void now(const std::string& what);
  void meetAll(int which, int count);
  ncclComm_t initComm(int size, long id, int rank);

  Shared& shared_;
  Cell cell_;
  int rank_;
  long number_;
  ncclConfig_t config_;
  ncclComm_t comm_ = nullptr;
  ncclComm_t child_ = nullptr;
  cudaStream_t stream_ = nullptr;
  Slot plain_;
  Slot pending_;
  Slot recorded_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
  void* handle_ = nullptr;  ///< of a registered buffer
  std::optional<ncclResult_t> answer_;
  bool parentFailed_ = false;  ///< though its shrink has succeeded
  std::string wrong_;
};

}  // namespace lifecycle

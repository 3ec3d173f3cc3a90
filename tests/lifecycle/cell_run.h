// One cell of the table as one rank carries it out.
#pragma once

#include <string>

#include "lifecycle/shared.h"
#include "lifecycle/table.h"
#include "lifecycle/work.h"

namespace lifecycle {

inline constexpr int kMembers = 3;   ///< ranks of the communicator; the last is the one that dies or is excluded
inline constexpr int kNewcomer = 3;  ///< the rank of the job that Grow takes in
inline constexpr int kTableRanks = 4;

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

 private:
  void prepare();
  void enterSituation();
  void record();
  void die();
  ncclResult_t call();
  ncclResult_t end();
  void followUp(ncclResult_t answer);
  void followRevoke();
  void followSuspend();
  void leave(ncclResult_t answer);

  bool acts() const;
  bool neverEnds() const;
  bool dead() const { return cell_.situation == Situation::DeadPeer; }
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
  bool parentFailed_ = false;  ///< though its shrink has succeeded
  std::string wrong_;
};

}  // namespace lifecycle

#include "ras/report/survey.h"

#include <utility>

#include "base/status.h"

namespace tutti::ras {

std::string_view funcName(Func func) {
  constexpr std::array<std::string_view, kFuncs> kNames{"Broadcast", "Reduce", "AllGather", "ReduceScatter",
                                                        "AllReduce", "Send",   "Recv",      "AlltoAll",
                                                        "Gather",    "Scatter"};
  return kNames[static_cast<std::size_t>(func)];
}

std::string_view statusName(RankStatus status) {
  constexpr std::array<std::string_view, 5> kNames{"NOCOMM", "INIT", "RUNNING", "FINALIZE", "ABORT"};
  return kNames[static_cast<std::size_t>(status)];
}

RankStatus statusOf(const RankState& state) {
  if (state.abortFlag) return RankStatus::Abort;
  if (state.finalizeCalled || state.destroyFlag) return RankStatus::Finalize;
  return state.initState == ncclSuccess ? RankStatus::Running : RankStatus::Init;
}

void Survey::add(SurveyedProcess process) {
  places_.emplace(process.facts.id, processes.size());
  processes.push_back(std::move(process));
}

const SurveyedProcess* Survey::find(ProcessId id) const {
  const auto place = places_.find(id);
  return place != places_.end() ? &processes[place->second] : nullptr;
}

}  // namespace tutti::ras

#include "ras/network/compose.h"

#include <algorithm>

namespace tutti::ras {

namespace {

void addTo(CommFacts& comm, const CommFacts& part) {
  if (comm.size == 0) {
    comm.key = part.key;
    comm.size = part.size;
  }
  if (part.size != comm.size) return;
  comm.ranks.insert(comm.ranks.end(), part.ranks.begin(), part.ranks.end());
  if (!comm.members && part.members && part.members->size() == static_cast<std::size_t>(part.size)) {
    comm.members = part.members;
  }
  if (comm.name.empty()) comm.name = part.name;
  if (comm.parent == 0) comm.parent = part.parent;
}

AbsentRank absentOf(std::int32_t rank, const CommMembers& members, const std::map<ProcessId, Answer>& answers) {
  if (!members) return {.rank = rank};
  const CommMember& member = (*members)[static_cast<std::size_t>(rank)];
  return {rank, member.process, member.cudaDevice, member.nvmlDevice, answers.contains(member.process)};
}

/// `room`: for so many ranks without data.
void complete(CommFacts& comm, const std::map<ProcessId, Answer>& answers, std::size_t& room) {
  const auto byRank = [](const RankFacts& a, const RankFacts& b) { return a.rank < b.rank; };
  const auto same = [](const RankFacts& a, const RankFacts& b) { return a.rank == b.rank; };
  std::stable_sort(comm.ranks.begin(), comm.ranks.end(), byRank);
  comm.ranks.erase(std::unique(comm.ranks.begin(), comm.ranks.end(), same), comm.ranks.end());
  auto next = comm.ranks.begin();
  for (std::int32_t rank = 0; rank < comm.size && room > 0; ++rank) {
    if (next != comm.ranks.end() && next->rank == rank) {
      ++next;
    } else {
      comm.absent.push_back(absentOf(rank, comm.members, answers));
      --room;
    }
  }
}

}  // namespace

Survey compose(const std::vector<const Member*>& members, const std::map<ProcessId, Answer>& answers,
               std::set<ProcessId> unresponsive) {
  Survey survey;
  std::map<CommKey, CommFacts> comms;
  for (const auto& [id, answer] : answers) {
    for (const CommFacts& part : answer.comms) addTo(comms[part.key], part);
    for (const ProcessId silent : answer.unresponsive) {
      if (!answers.contains(silent)) unresponsive.insert(silent);
    }
  }
  for (const Member* const member : members) {
    const ProcessId id = member->facts.id;
    survey.add({member->facts, answers.contains(id), unresponsive.contains(id)});
  }
  std::size_t room = kMostAbsent;
  for (auto& [key, comm] : comms) {
    complete(comm, answers, room);
    survey.comms.push_back(std::move(comm));
  }
  std::stable_sort(survey.comms.begin(), survey.comms.end(),
                   [](const CommFacts& a, const CommFacts& b) { return a.size > b.size; });
  return survey;
}

}  // namespace tutti::ras

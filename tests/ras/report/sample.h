// Jobs made up for tests of reports.
#pragma once

#include <cstdint>

#include "ras/report/survey.h"

namespace tutti::ras {

/// Of process number `n`: on host `host`, with device `device` alone.
inline SurveyedProcess sampleProcess(std::uint32_t n, std::uint32_t host, int device) {
  SurveyedProcess process;
  process.facts.id = n + 1;
  process.facts.address = Address::loopback(AF_INET, static_cast<std::uint16_t>(n % 60000 + 1));
  process.facts.pid = static_cast<std::int32_t>(1000 + n);
  process.facts.hostHash = host + 1;
  process.facts.cudaDevices = std::uint64_t{1} << device;
  process.facts.nvmlDevices = process.facts.cudaDevices;
  process.answered = true;
  return process;
}

/// `hosts` nodes of `perHost` processes with a GPU each, and one communicator of all, idle.
inline Survey sampleJob(std::uint32_t hosts, std::uint32_t perHost) {
  Survey survey;
  CommFacts comm;
  comm.key = {0xcf264af53edbe986, 1, 1};
  comm.size = static_cast<std::int32_t>(hosts * perHost);
  for (std::uint32_t n = 0; n < hosts * perHost; ++n) {
    const int device = static_cast<int>(n % perHost);
    survey.add(sampleProcess(n, n / perHost, device));
    comm.ranks.push_back({static_cast<std::int32_t>(n), n + 1, device, device, {}});
  }
  survey.comms.push_back(std::move(comm));
  return survey;
}

inline constexpr LibraryFacts kSampleLibrary{"2.32.3", 13000, 13000, 13010};

/// Rank `rank` of the first communicator goes missing with its process.
inline void loseRank(Survey& survey, std::size_t rank) {
  CommFacts& comm = survey.comms.front();
  const RankFacts lost = comm.ranks.at(rank);
  comm.ranks.erase(comm.ranks.begin() + static_cast<std::ptrdiff_t>(rank));
  comm.absent.push_back({lost.rank, lost.process, lost.cudaDevice, lost.nvmlDevice, false});
  survey.processes.at(rank).answered = false;
}

}  // namespace tutti::ras

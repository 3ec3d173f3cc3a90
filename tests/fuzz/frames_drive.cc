#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "dialogue.h"
#include "ras/network/compose.h"
#include "ras/report/json_report.h"
#include "ras/report/text_report.h"
#include "ras_drive.h"

namespace tutti::fuzz {

namespace {

using ras::Answer;
using ras::Bytes;
using ras::CommFacts;
using ras::Member;
using ras::ProcessState;

/// Ranks of all communicators up to which reports are made.
constexpr std::size_t kMostReported = 4096;
constexpr ras::LibraryFacts kLibrary{"2.32.3", 13000, 13000, 13010};

std::size_t countOf(const nlohmann::json& comms, const char* key) {
  std::size_t count = 0;
  for (const auto& comm : comms) count += comm.at(key).size();
  return count;
}

std::string driveReports(const ras::Survey& survey, std::size_t ranks, std::size_t absent) {
  const std::string text =
      ras::reportBegin(kLibrary, survey.processes) + ras::reportRest(survey, false) + ras::reportRest(survey, true);
  const bool clean = std::all_of(text.begin(), text.end(), [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); });
  if (!clean) return "a report holds control characters";
  const auto json = nlohmann::json::parse(ras::jsonReport(kLibrary, survey, {}), nullptr, false);
  if (!json.is_object()) return "a report is no JSON";
  const auto& comms = json.at("communicators");
  if (comms.size() != survey.comms.size()) return "a report has another number of communicators";
  return countOf(comms, "ranks") == ranks && countOf(comms, "missing_ranks") == absent
             ? ""
             : "a report has another number of ranks";
}

/// Two processes say the same, and a third one nothing.
std::string driveSurvey(const Answer& answer) {
  Member silent = fuzzedProcess();
  silent.facts.id = 1;
  const std::vector<const Member*> members{&fuzzedProcess(), &silent};
  const ras::ProcessId id = fuzzedProcess().facts.id;
  const ras::Survey survey = ras::compose(members, {{id, answer}, {2, answer}}, {});
  std::size_t ranks = 0;
  std::size_t absent = 0;
  std::size_t sizes = 0;
  for (const CommFacts& comm : survey.comms) {
    std::vector<std::int32_t> numbers;
    for (const ras::RankFacts& rank : comm.ranks) numbers.push_back(rank.rank);
    for (const ras::AbsentRank& rank : comm.absent) numbers.push_back(rank.rank);
    std::sort(numbers.begin(), numbers.end());
    const bool once = std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end();
    if (!once || (!numbers.empty() && (numbers.front() < 0 || numbers.back() >= comm.size))) {
      return "a communicator has ranks twice, or ranks that are none of its own";
    }
    ranks += comm.ranks.size();
    absent += comm.absent.size();
    sizes += static_cast<std::size_t>(comm.size);
  }
  if (absent > ras::kMostAbsent) return "a survey keeps too many ranks of which nothing is known";
  if (sizes > kMostReported) return "";
  if (ranks + absent != sizes) return "ranks are neither there nor missing";
  return driveReports(survey, ranks, absent);
}

std::string driveAnswer(std::span<const std::byte> bytes) {
  const auto answer = ras::decodeAnswer(bytes, fuzzedProcess().facts.id);
  if (!answer) return "";
  const Bytes again = ras::encodeAnswer(*answer);
  if (!std::equal(again.begin(), again.end(), bytes.begin(), bytes.end())) return "an answer is not written as it came";
  return driveSurvey(*answer);
}

bool same(const Member& a, const Member& b) {
  return a.key == b.key && a.facts.id == b.facts.id && a.facts.pid == b.facts.pid &&
         a.facts.hostHash == b.facts.hostHash && a.facts.cudaDevices == b.facts.cudaDevices &&
         a.facts.nvmlDevices == b.facts.nvmlDevices && a.facts.state == b.facts.state &&
         std::memcmp(&a.facts.address, &b.facts.address, sizeof(Address)) == 0;
}

bool same(const std::vector<Member>& a, const std::vector<Member>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Member& one, const Member& other) { return same(one, other); });
}

/// What two processes know who hear of `table` in either order.
std::string driveMembers(const std::vector<Member>& table) {
  ras::Members forwards(fuzzedProcess());
  ras::Members backwards(fuzzedProcess());
  for (const Member& member : table) static_cast<void>(forwards.merge(member));
  for (auto member = table.rbegin(); member != table.rend(); ++member) static_cast<void>(backwards.merge(*member));
  if (forwards.size() != backwards.size() || forwards.hash() != backwards.hash()) {
    return "what is known depends on the order in which it was heard";
  }
  for (const Member& member : table) {
    if (forwards.merge(member)) return "the same is news twice";
    const Member* const known = forwards.find(member.facts.id);
    if (!known || known->key != member.key) return "who was told of is not known";
    if (known->facts.state < member.facts.state && known != &forwards.self()) return "a process gets better";
  }
  if (forwards.all().size() != forwards.size()) return "the ring is not the table";
  return "";
}

std::string driveTable(std::span<const std::byte> bytes) {
  const auto table = ras::decodeTable(bytes, fuzzedProcess().key);
  if (!table) return "";
  const auto again = ras::decodeTable(sealed(*table), fuzzedProcess().key);
  if (!again || !same(*table, *again)) return "a table does not come back as it was";
  return driveMembers(*table);
}

/// As much of a table as nobody can make who has no key.
std::string driveSealed(std::span<const std::byte> bytes) {
  const std::vector<Member> entries = plainEntries(bytes);
  const bool good = std::all_of(entries.begin(), entries.end(), [](const Member& entry) {
    const int family = entry.facts.address.family();
    return (family == AF_INET || family == AF_INET6) && entry.facts.state <= ProcessState::Left;
  });
  const Bytes table = sealed(entries);
  const auto back = ras::decodeTable(table, fuzzedProcess().key);
  if (back.has_value() != good) return good ? "a good table is refused" : "a bad table is taken";
  if (!good) return "";
  return same(*back, entries) ? driveTable(table) : "a sealed table does not come back as it was";
}

}  // namespace

std::string driveFrames(std::string_view text) {
  if (text.empty()) return "";
  static_cast<void>(fuzzedProcess());
  const std::string_view rest = text.substr(1);
  switch (text.front()) {
    case 'A':
      return driveAnswer(viewOf(rest));
    case 'T':
      return driveTable(viewOf(rest));
    case 'S':
      return driveSealed(viewOf(rest));
    case 'N':
      return playFrames(rest);
    default:
      return "";
  }
}

}  // namespace tutti::fuzz

#include "lifecycle/world.h"

#include <algorithm>
#include <array>

namespace lifecycle {

namespace {

std::string list(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : " ") + std::to_string(number);
  return "{" + text + "}";
}

std::string describe(const Comm& comm) {
  return "communicator " + std::to_string(comm.id) + " of ranks " + list(comm.members) +
         (comm.blocking ? "" : ", non-blocking") + (comm.splitShare ? ", shares" : "");
}

std::string describe(const Op& op) {
  static constexpr std::array kNames = {"AllReduce", "Reduce",   "ReduceScatter", "AllGather", "Broadcast",
                                        "a ring",    "AlltoAll", "Gather",        "Scatter"};
  return std::string(kNames[static_cast<std::size_t>(op.kind)]) + " of " + std::to_string(op.count) +
         " elements of type " + std::to_string(op.type) + ", operator " + std::to_string(op.op) + ", root " +
         std::to_string(op.root) + (op.patient ? ", looked at later" : "");
}

}  // namespace

int Comm::rankOf(int jobRank) const {
  const auto found = std::find(members.begin(), members.end(), jobRank);
  return found == members.end() ? -1 : static_cast<int>(found - members.begin());
}

const char* nameOf(Kind kind) {
  static constexpr std::array kNames = {
      "init",     "split",   "shrink", "shrink with abort", "grow",       "revoke",
      "finalize", "destroy", "abort",  "operation",         "record",     "replay",
      "drop",     "suspend", "resume", "register",          "deregister", "wrong call"};
  static_assert(kNames.size() == kKinds);
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<int> Deed::participants() const {
  std::vector<int> all = comm.members;
  if (kind == Kind::Wrong) all = {who};
  for (const std::vector<Comm>* others : {&born, &doomed})
    for (const Comm& one : *others) all.insert(all.end(), one.members.begin(), one.members.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::string describe(const Deed& deed) {
  std::string text =
      std::string(nameOf(deed.kind)) + " (deed " + std::to_string(deed.number) + "), " + describe(deed.comm);
  if (!deed.colors.empty()) text += ", colors " + list(deed.colors) + ", keys " + list(deed.keys);
  if (!deed.excluded.empty()) text += ", without " + list(deed.excluded);
  if (deed.kind == Kind::Work || deed.kind == Kind::Record) text += ", " + describe(deed.op);
  if (deed.kind == Kind::Record || deed.kind == Kind::Replay || deed.kind == Kind::Drop)
    text += ", recording " + std::to_string(deed.recording);
  if (deed.kind == Kind::Register || deed.kind == Kind::Deregister)
    text += ", registration " + std::to_string(deed.registration);
  if (deed.kind == Kind::Register)
    text += deed.recording < 0 ? ", any buffer" : ", of recording " + std::to_string(deed.recording);
  if (!deed.doomed.empty()) text += ", with " + std::to_string(deed.doomed.size()) + " of its family";
  if (deed.stuck) text += ", while an operation waits";
  if (deed.kind == Kind::Wrong) text += ", by rank " + std::to_string(deed.who) + ", " + std::to_string(deed.which);
  for (const Comm& born : deed.born) text += ", makes " + describe(born);
  return text;
}

}  // namespace lifecycle

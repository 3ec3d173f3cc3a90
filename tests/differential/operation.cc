#include "differential/operation.h"

#include <algorithm>
#include <array>

#include "bench/datatypes.h"

namespace differential {

const char* funcName(Func func) {
  static constexpr std::array<const char*, kFuncs> kNames{
      "AllReduce", "Reduce", "ReduceScatter", "AllGather", "Broadcast", "AlltoAll", "Gather", "Scatter", "Messages"};
  return kNames[static_cast<std::size_t>(func)];
}

bool isReduction(Func func) {
  return func == Func::AllReduce || func == Func::Reduce || func == Func::ReduceScatter;
}

std::string describe(const Operation& operation) {
  std::string text = "operation " + std::to_string(operation.number) + ": " + funcName(operation.func) + " ";
  if (operation.func == Func::Messages) {
    text += std::to_string(operation.messages.size()) + " messages";
  } else {
    text += bench::typeName(operation.type);
    if (isReduction(operation.func)) {
      text += operation.op == kPreMulSum ? " premulsum" : std::string(" ") + bench::opName(operation.op);
      if (operation.op == kPreMulSum && operation.scalarOnDevice) text += " (factor on the device)";
    }
    text += ", " + std::to_string(operation.count) + " elements, root " + std::to_string(operation.root);
  }
  return text + ", communicator " + std::to_string(operation.comm) + ", stream " + std::to_string(operation.stream);
}

std::size_t Round::operations() const {
  std::size_t sum = 0;
  for (const Group& group : groups) sum += group.operations.size();
  return sum;
}

int Layout::rankIn(int comm, int rank) const {
  const auto& members = comms[static_cast<std::size_t>(comm)];
  const auto found = std::find(members.begin(), members.end(), rank);
  return found == members.end() ? -1 : static_cast<int>(found - members.begin());
}

}  // namespace differential

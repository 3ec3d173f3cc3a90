#include "comm/state/op_tally.h"

namespace tutti::comm {

void OpTally::called(const Op& op, int nRanks) {
  const bool blockPerRank = op.func == ApiFunc::AllGather || op.func == ApiFunc::ReduceScatter ||
                            op.func == ApiFunc::AlltoAll || op.func == ApiFunc::Gather || op.func == ApiFunc::Scatter;
  const std::uint64_t blocks = blockPerRank ? static_cast<std::uint64_t>(nRanks) : 1;
  calls_[index(op.func)].add(op.count * datatypeBytes(op.datatype) * blocks);
}

}  // namespace tutti::comm

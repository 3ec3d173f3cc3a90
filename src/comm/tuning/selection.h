// Reading algSelection of ncclCollConfig_t.
#pragma once

#include <string_view>

#include "base/status.h"
#include "comm/tuning/call_options.h"

namespace tutti::comm {

/// Reads a list as nccl.h describes it; "" selects nothing. ncclInvalidArgument with the word that is wrong.
Result<Selection> parseSelection(std::string_view text);

}  // namespace tutti::comm

// Names of result codes, for messages.
#pragma once

#include <string>

#include "nccl.h"

namespace tutti {

/// "ncclSystemError"; what a plugin returns may be no result code at all, which the text then says.
std::string resultName(ncclResult_t code);

}  // namespace tutti

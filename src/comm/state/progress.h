// Whether an operation of a communicator has finished or goes on in the background.
#pragma once

#include <cstdint>

namespace tutti::comm {

/// `Pending` is what the API reports as ncclInProgress: not an error, hence never part of a Status.
enum class Progress : std::uint8_t { Done, Pending };

}  // namespace tutti::comm

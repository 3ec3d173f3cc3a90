// What the fuzzers do with what processes and their clients tell each other, for them and for the test that replays
// their corpora. All return what went wrong, "" if nothing did: a refusal is nothing wrong.
#pragma once

#include <string>
#include <string_view>

#include "target.h"

namespace tutti::fuzz {

/// Plays `script` to a session and hears what it answers. A byte 0xff is an order to the driver, and the byte behind it
/// says which (client_drive.cc); all else is what the client says. Said in one piece and said in many it has to be
/// answered the same, as the protocol has it, and the session keeps no more than it may.
std::string driveClient(std::string_view script);

/// The first byte says what the rest is: 'A' an answer, 'T' a table, 'S' a table whose keys are still to be sealed,
/// 'N' a dialogue of frames with a process (frames_drive.cc). What is taken has to be written as it was read.
std::string driveFrames(std::string_view text);

/// Reads `text` as metrics of several processes, with 0x1e between them, joins them, and makes a table of them.
std::string driveMetrics(std::string_view text);

}  // namespace tutti::fuzz

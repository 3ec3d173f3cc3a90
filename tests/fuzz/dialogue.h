// A process of a job, and somebody who has its key and sends it frames.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ras/network/messages.h"

namespace tutti::fuzz {

inline std::span<const std::byte> viewOf(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// The process that is talked to.
const ras::Member& fuzzedProcess();

/// A table as processes send it, of entries whose keys are in the clear and whose ids are not looked at: as many whole
/// ones as there are bytes for.
std::vector<ras::Member> plainEntries(std::span<const std::byte> bytes);
ras::Bytes sealed(const std::vector<ras::Member>& entries);

/// Plays a dialogue of frames to a process's network (dialogue.cc says how it is written), and looks whether frames
/// that make sense are taken, whether others end the connection with a word about it, and what is answered.
std::string playFrames(std::string_view script);

}  // namespace tutti::fuzz

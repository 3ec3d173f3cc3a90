// The inputs of the corpora, for tests that replay them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "archive.h"

namespace tutti::fuzz {

/// Of the checkout.
std::filesystem::path sources();
std::string bytesOf(const std::filesystem::path& path);
std::vector<Input> corpus(const std::string& name);

using Drive = std::string (*)(std::string_view);
/// Nothing may go wrong with any of them; there has to be one.
void replay(const std::vector<Input>& inputs, Drive drive);

/// Changes an input; the same for the same seed.
using Change = std::string (*)(std::string_view text, std::uint64_t seed);
/// Likewise, with `count` changed inputs, taken in turn from those of at most `bytes`.
void replayChanged(std::vector<Input> inputs, Drive drive, Change change, std::uint64_t count, std::size_t bytes);

}  // namespace tutti::fuzz

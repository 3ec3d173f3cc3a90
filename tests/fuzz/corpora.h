// The inputs of the corpora, for tests that replay them.
#pragma once

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

}  // namespace tutti::fuzz

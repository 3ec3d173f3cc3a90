#include "corpora.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "target.h"

namespace tutti::fuzz {

std::filesystem::path sources() {
  const char* root = std::getenv("TUTTI_TEST_SOURCE_ROOT");
  return root ? root : ".";
}

std::string bytesOf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Input> corpus(const std::string& name) {
  return readArchive(bytesOf(sources() / "tests/fuzz/corpus" / (name + ".tar")));
}

void replay(const std::vector<Input>& inputs, Drive drive) {
  silenceLog();
  ASSERT_FALSE(inputs.empty());
  for (const Input& input : inputs) EXPECT_EQ(drive(input.text), "") << input.name;
}

void replayChanged(std::vector<Input> inputs, Drive drive, Change change, std::uint64_t count, std::size_t bytes) {
  silenceLog();
  std::erase_if(inputs, [bytes](const Input& input) { return input.text.size() > bytes; });
  ASSERT_FALSE(inputs.empty());
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    const Input& input = inputs[seed % inputs.size()];
    EXPECT_EQ(drive(change(input.text, seed)), "") << input.name << ", seed " << seed;
  }
}

}  // namespace tutti::fuzz

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

}  // namespace tutti::fuzz

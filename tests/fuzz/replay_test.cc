// The corpora of the fuzzers of the XML readers and a few thousand changed files, in every run of the tests: what was
// found once stays found, without clang.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "corpora.h"
#include "drive.h"
#include "mutate.h"

namespace tutti::fuzz {
namespace {

/// All files of a folder below tests/fixtures, by name.
std::vector<Input> fixtures(const std::string& folder) {
  std::vector<Input> inputs;
  for (const auto& entry : std::filesystem::directory_iterator(sources() / "tests/fixtures" / folder)) {
    inputs.push_back({entry.path().filename(), bytesOf(entry.path())});
  }
  std::sort(inputs.begin(), inputs.end(), [](const Input& a, const Input& b) { return a.name < b.name; });
  return inputs;
}

/// `count` changed files, taken in turn from the inputs of at most `bytes`.
void replayChanged(std::vector<Input> inputs, Drive drive, int count, std::size_t bytes) {
  silenceLog();
  std::erase_if(inputs, [bytes](const Input& input) { return input.text.size() > bytes; });
  ASSERT_FALSE(inputs.empty());
  for (int seed = 0; seed < count; ++seed) {
    const Input& input = inputs[static_cast<std::size_t>(seed) % inputs.size()];
    EXPECT_EQ(drive(mutateXml(input.text, static_cast<std::uint64_t>(seed))), "") << input.name << ", seed " << seed;
  }
}

TEST(TopologyReader, TakesItsCorpus) {
  replay(corpus("topology"), driveTopology);
}

TEST(TopologyReader, TakesAllMachines) {
  replay(fixtures("topo"), driveTopology);
}

TEST(TopologyReader, TakesChangedMachines) {
  replayChanged(fixtures("topo"), driveTopology, 400, 6000);
}

TEST(TopologyReader, TakesItsChangedCorpus) {
  replayChanged(corpus("topology"), driveTopology, 1000, 4096);
}

TEST(Search, FindsGraphsOfTheCorpus) {
  replay(corpus("topology"), driveSearch);
}

TEST(Search, FindsGraphsOfChangedMachines) {
  replayChanged(fixtures("topo"), driveSearch, 150, 6000);
}

TEST(GraphReader, TakesItsCorpus) {
  replay(corpus("graph"), driveGraphs);
}

TEST(GraphReader, TakesItsChangedCorpus) {
  replayChanged(corpus("graph"), driveGraphs, 2000, 4096);
}

TEST(Mutation, IsTheSameForTheSameSeedAndChangesSomething) {
  const std::string text = "<a><b c=\"1\"/><d/></a>";
  int changed = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_EQ(mutateXml(text, seed), mutateXml(text, seed));
    changed += mutateXml(text, seed) != text ? 1 : 0;
  }
  EXPECT_GT(changed, 40);
}

}  // namespace
}  // namespace tutti::fuzz

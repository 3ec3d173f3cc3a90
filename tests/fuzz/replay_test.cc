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

TEST(TopologyReader, TakesItsCorpus) {
  replay(corpus("topology"), driveTopology);
}

TEST(TopologyReader, TakesAllMachines) {
  replay(fixtures("topo"), driveTopology);
}

TEST(TopologyReader, TakesChangedMachines) {
  replayChanged(fixtures("topo"), driveTopology, mutateXml, 400, 6000);
}

TEST(TopologyReader, TakesItsChangedCorpus) {
  replayChanged(corpus("topology"), driveTopology, mutateXml, 1000, 4096);
}

TEST(Search, FindsGraphsOfTheCorpus) {
  replay(corpus("topology"), driveSearch);
}

TEST(Search, FindsGraphsOfChangedMachines) {
  replayChanged(fixtures("topo"), driveSearch, mutateXml, 150, 6000);
}

TEST(GraphReader, TakesItsCorpus) {
  replay(corpus("graph"), driveGraphs);
}

TEST(GraphReader, TakesItsChangedCorpus) {
  replayChanged(corpus("graph"), driveGraphs, mutateXml, 2000, 4096);
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

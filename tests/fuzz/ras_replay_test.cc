// The corpora of the fuzzers of what processes and their clients tell each other, and some hundred changed inputs, in
// every run of the tests.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "corpora.h"
#include "ras_drive.h"

namespace tutti::fuzz {
namespace {

/// A few bytes changed, put in, left out or repeated; the same for the same seed.
std::string changed(std::string text, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&random](std::size_t n) { return n == 0 ? 0 : random() % n; };
  for (std::size_t n = 1 + below(4); n > 0; --n) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = below(16);
    const auto byte = static_cast<char>(random());
    switch (below(4)) {
      case 0:
        text.insert(at, 1, byte);
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(below(text.size() + 1), text.substr(at, length));
        break;
      default:
        if (at < text.size()) text[at] = byte;
    }
  }
  return text;
}

/// `count` changed inputs, taken in turn from those of at most `bytes`.
void replayChanged(std::vector<Input> inputs, Drive drive, std::uint32_t count, std::size_t bytes) {
  silenceLog();
  std::erase_if(inputs, [bytes](const Input& input) { return input.text.size() > bytes; });
  ASSERT_FALSE(inputs.empty());
  for (std::uint32_t seed = 0; seed < count; ++seed) {
    const Input& input = inputs[seed % inputs.size()];
    EXPECT_EQ(drive(changed(input.text, seed)), "") << input.name << ", seed " << seed;
  }
}

TEST(ClientSession, TakesItsCorpus) {
  replay(corpus("client"), driveClient);
}

TEST(ClientSession, TakesItsChangedCorpus) {
  replayChanged(corpus("client"), driveClient, 40, 400);
}

TEST(Frames, TakeTheirCorpus) {
  replay(corpus("frames"), driveFrames);
}

TEST(Frames, TakeTheirChangedCorpus) {
  replayChanged(corpus("frames"), driveFrames, 500, 1024);
}

TEST(Metrics, TakeTheirCorpus) {
  replay(corpus("metrics"), driveMetrics);
}

TEST(Metrics, TakeTheirChangedCorpus) {
  replayChanged(corpus("metrics"), driveMetrics, 600, 2048);
}

}  // namespace
}  // namespace tutti::fuzz

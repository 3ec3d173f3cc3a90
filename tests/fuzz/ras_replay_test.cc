// The corpora of the fuzzers of what processes and their clients tell each other, and some hundred changed inputs, in
// every run of the tests.
#include <gtest/gtest.h>

#include "change_bytes.h"
#include "corpora.h"
#include "ras_drive.h"

namespace tutti::fuzz {
namespace {

TEST(ClientSession, TakesItsCorpus) {
  replay(corpus("client"), driveClient);
}

TEST(ClientSession, TakesItsChangedCorpus) {
  replayChanged(corpus("client"), driveClient, changeBytes, 40, 400);
}

TEST(Frames, TakeTheirCorpus) {
  replay(corpus("frames"), driveFrames);
}

TEST(Frames, TakeTheirChangedCorpus) {
  replayChanged(corpus("frames"), driveFrames, changeBytes, 500, 1024);
}

TEST(Metrics, TakeTheirCorpus) {
  replay(corpus("metrics"), driveMetrics);
}

TEST(Metrics, TakeTheirChangedCorpus) {
  replayChanged(corpus("metrics"), driveMetrics, changeBytes, 600, 2048);
}

}  // namespace
}  // namespace tutti::fuzz
